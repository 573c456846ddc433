// SPDX-License-Identifier: Apache-2.0
#include "collective/message_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tug {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

// Cells of a buffer: cell c is elements [begins[c], begins[c + 1]). Empty parts have no cells.
struct Cells {
  std::vector<uint64_t> begins;
  std::vector<uint32_t> first_of_part;  // and a last entry: the number of cells

  uint32_t count() const { return static_cast<uint32_t>(begins.size()) - 1; }
};

Cells CutIntoCells(uint64_t elements, uint32_t parts, uint64_t chunk_elements) {
  Cells cells;
  for (uint32_t part = 0; part < parts; ++part) {
    cells.first_of_part.push_back(static_cast<uint32_t>(cells.begins.size()));
    const uint64_t end = PartBegin(elements, parts, part + 1);
    for (uint64_t at = PartBegin(elements, parts, part); at < end; at += chunk_elements) {
      cells.begins.push_back(at);
    }
  }
  cells.first_of_part.push_back(static_cast<uint32_t>(cells.begins.size()));
  cells.begins.push_back(elements);
  return cells;
}

struct MessageCells {
  uint32_t first;
  uint32_t end;
};

// Cuts a transfer into messages; appends them to `to`, and their cells to `cells_of`.
void CutTransfer(const Transfer& transfer, uint32_t step, const Cells& cells,
                 uint64_t chunk_elements, std::vector<PlannedMessage>& to,
                 std::vector<MessageCells>& cells_of) {
  const uint32_t last = cells.first_of_part[transfer.end];
  for (uint32_t at = cells.first_of_part[transfer.begin]; at < last;) {
    const uint32_t first = at;
    do {
      ++at;
    } while (at < last && cells.begins[at + 1] - cells.begins[first] <= chunk_elements);
    to.push_back({.peer = transfer.peer,
                  .step = step,
                  .reduces = transfer.reduces,
                  .begin = cells.begins[first],
                  .end = cells.begins[at]});
    cells_of.push_back({first, at});
  }
}

NumberLists NumberByPeer(std::vector<PlannedMessage>& messages, uint32_t world) {
  std::vector<uint32_t> counts(world);
  std::vector<Pair> pairs;
  for (uint32_t m = 0; m < messages.size(); ++m) {
    messages[m].number = counts[messages[m].peer]++;
    pairs.emplace_back(messages[m].peer, m);
  }
  return NumberLists::From(world, pairs);
}

absl::Status CheckTransfers(const std::vector<Transfer>& transfers, uint32_t rank, uint32_t world,
                            uint32_t parts) {
  for (const Transfer& t : transfers) {
    if (t.peer < world && t.peer != rank && t.begin < t.end && t.end <= parts) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " of ", world, " has an invalid transfer with rank ", t.peer,
                     ": parts ", t.begin, " to ", t.end, " of ", parts));
  }
  return absl::OkStatus();
}

// Finds which messages wait for which, from the first step to the last.
class WaitFinder {
 public:
  WaitFinder(MessagePlan& plan, uint32_t cells)
      : plan_(plan), written_by_(cells, kNobody), sent_since_(cells) {
    plan.send_waits.resize(plan.sends.size());
    plan.receive_waits.resize(plan.receives.size());
    plan.receive_waits_reads.resize(plan.receives.size());
  }

  void Send(uint32_t send, MessageCells cells) {
    for (uint32_t cell = cells.first; cell < cells.end; ++cell) {
      sent_since_[cell].push_back(send);
      if (written_by_[cell] != kNobody) SendAfter(send, written_by_[cell]);
    }
  }

  void Ports(PortOrder order) {
    for (const auto& [receive, send] : order.sends_after_receives) SendAfter(send, receive);
    for (const auto& [word, send] : order.sends_after_words) ++plan_.send_waits[send];
    plan_.said_waits.resize(order.said.size());
    for (const auto& [receive, word] : order.said_after_receives) ++plan_.said_waits[word];
    plan_.said_after =
        NumberLists::From(static_cast<uint32_t>(plan_.receives.size()), order.said_after_receives);
    plan_.sends_after_words =
        NumberLists::From(static_cast<uint32_t>(order.awaited.size()), order.sends_after_words);
    plan_.said = std::move(order.said);
    plan_.awaited = std::move(order.awaited);
  }

  void SendAfter(uint32_t send, uint32_t receive) {
    ++plan_.send_waits[send];
    sends_after_.emplace_back(receive, send);
  }

  void Receive(uint32_t receive, MessageCells cells) {
    for (uint32_t cell = cells.first; cell < cells.end; ++cell) {
      if (written_by_[cell] != kNobody) {
        ++plan_.receive_waits[receive];
        receives_after_.emplace_back(written_by_[cell], receive);
      }
      for (const uint32_t send : sent_since_[cell]) {
        ++plan_.receive_waits_reads[receive];
        receives_after_reads_.emplace_back(send, receive);
      }
      sent_since_[cell].clear();
      written_by_[cell] = receive;
    }
  }

  void Finish() {
    const auto sends = static_cast<uint32_t>(plan_.sends.size());
    const auto receives = static_cast<uint32_t>(plan_.receives.size());
    plan_.sends_after = NumberLists::From(receives, sends_after_);
    plan_.receives_after = NumberLists::From(receives, receives_after_);
    plan_.receives_after_reads = NumberLists::From(sends, receives_after_reads_);
  }

 private:
  static constexpr uint32_t kNobody = ~uint32_t{0};
  MessagePlan& plan_;
  std::vector<uint32_t> written_by_;               // by cell
  std::vector<std::vector<uint32_t>> sent_since_;  // by cell
  std::vector<Pair> sends_after_;
  std::vector<Pair> receives_after_;
  std::vector<Pair> receives_after_reads_;
};

}  // namespace

NumberLists NumberLists::From(uint32_t lists, std::span<const Pair> pairs) {
  NumberLists result;
  result.begins_.resize(lists + 1);
  for (const Pair& pair : pairs) ++result.begins_[pair.first + 1];
  for (uint32_t list = 0; list < lists; ++list) result.begins_[list + 1] += result.begins_[list];
  std::vector<uint32_t> next(result.begins_.begin(), result.begins_.end() - 1);
  result.numbers_.resize(pairs.size());
  for (const Pair& pair : pairs) result.numbers_[next[pair.first]++] = pair.second;
  return result;
}

absl::StatusOr<MessagePlan> PlanMessages(const CollectiveSchedule& schedule, uint32_t rank,
                                         uint32_t world, uint64_t elements, MessageSizes sizes,
                                         const std::vector<bool>& over_network) {
  TUG_CHECK(sizes.chunk_elements > 0);
  TUG_CHECK_EQ(over_network.size(), world);
  if (schedule.parts == 0) return absl::InvalidArgumentError("the schedule has no parts");
  MessagePlan plan;
  plan.schedule = schedule;
  plan.elements = elements;
  plan.chunk_elements = sizes.chunk_elements;
  const Cells cells = CutIntoCells(elements, schedule.parts, sizes.chunk_elements);
  std::vector<MessageCells> send_cells, receive_cells;
  std::vector<uint32_t> sends_end, receives_end;  // by step: number of messages up to its end
  for (uint32_t s = 0; s < schedule.steps.size(); ++s) {
    const Step& step = schedule.steps[s];
    RETURN_IF_ERROR(CheckTransfers(step.sends, rank, world, schedule.parts));
    RETURN_IF_ERROR(CheckTransfers(step.receives, rank, world, schedule.parts));
    for (const Transfer& t : step.sends) {
      CutTransfer(t, s, cells, sizes.chunk_elements, plan.sends, send_cells);
    }
    for (const Transfer& t : step.receives) {
      CutTransfer(t, s, cells, sizes.chunk_elements, plan.receives, receive_cells);
    }
    sends_end.push_back(static_cast<uint32_t>(plan.sends.size()));
    receives_end.push_back(static_cast<uint32_t>(plan.receives.size()));
  }
  plan.sends_to = NumberByPeer(plan.sends, world);
  plan.receives_from = NumberByPeer(plan.receives, world);

  WaitFinder waits(plan, cells.count());
  waits.Ports(OrderPorts(static_cast<uint32_t>(schedule.steps.size()), plan.sends, plan.receives,
                         over_network, schedule.takes_turns ? sizes.word_elements : kNoWords));
  uint32_t send = 0;
  uint32_t receive = 0;
  for (uint32_t s = 0; s < schedule.steps.size(); ++s) {
    for (; send < sends_end[s]; ++send) waits.Send(send, send_cells[send]);
    for (; receive < receives_end[s]; ++receive) waits.Receive(receive, receive_cells[receive]);
  }
  waits.Finish();
  return plan;
}

}  // namespace tug
