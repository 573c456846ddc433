// SPDX-License-Identifier: Apache-2.0
// RankGroup's handling of collectives on a board.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "collective/rank_group.h"

namespace tug {

bool RankGroup::HasBoardWork() const {
  const PlannedMessage* const next = runs_.begin()->second.run->next_awaited();
  return (next != nullptr && board_->HasFirst(next->peer)) || board_->CanFlush();
}

// 1. The message that is next in the plan is applied in place, then taken.
// 2. Another message of the same rank may have been posted before it, if its send waits for less
//    than one of an earlier step does. It is copied, and applied when it is next.
bool RankGroup::TakeFromBoard(uint64_t number, Running& running) {
  const PlannedMessage* const next = running.run->next_awaited();
  if (next == nullptr) return false;
  const uint32_t rank = next->peer;
  const std::optional<MessageBoard::Posted> posted = board_->First(rank);
  if (!posted.has_value()) return false;
  const CollectiveHeader says = ReadCollectiveHeader(posted->header);
  if (says.number != number || posted->header.kind != MessageKind::kElements) {
    CheckPosted(number, running, rank, now_);
    return true;
  }
  Message message{posted->header, Lease(nullptr, posted->payload), Home::kSender};
  if (says.message != next->number) {
    const SendBuffers::Payload copy = copies_.Take(posted->payload.size());
    std::copy(posted->payload.begin(), posted->payload.end(), copy.bytes.begin());
    message.payload = copy.lease;
    message.home = Home::kReceiver;
  }
  Deliver(rank, std::move(message), now_);
  if (!status_.ok()) return true;
  while (running.run->Work()) {
  }
  board_->Take(rank);
  return true;
}

void RankGroup::CheckPosted(uint64_t number, const Running& running, uint32_t rank,
                            absl::Time now) {
  const std::optional<MessageBoard::Posted> posted = board_->First(rank);
  if (!posted.has_value()) return;
  const WireHeader& header = posted->header;
  const CollectiveHeader says = ReadCollectiveHeader(header);
  if (!running.on_board || !running.run->awaits(rank)) {
    if (says.number != number) return;  // belongs to a later collective
    // More messages than planned, or a collective that is shorter there: never accepted.
    return Deliver(rank, {header, Lease(nullptr, posted->payload), Home::kSender}, now);
  }
  if (says.number == number && header.kind == MessageKind::kElements) {
    Agrees(*running.run, rank, says);
    return;
  }
  Fail(absl::StatusCode::kInvalidArgument, rank,
       absl::StrCat("is in collective ", says.number, ", rank ", options_.rank, " in ", number,
                    ": all ranks must call the same collectives"));
}

void RankGroup::Nudge() {
  if (!watches_board()) return;
  board_->Nudge([&](uint32_t rank) { SendInCollective(runs_.begin()->first, rank); });
}

}  // namespace tug
