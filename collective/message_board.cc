// SPDX-License-Identifier: Apache-2.0
#include "collective/message_board.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace tug {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<WireHeader>);

size_t MessageBoard::BoardBytes(uint32_t world) { return sizeof(Board) + world * sizeof(Page); }

MessageBoard::MessageBoard(uint32_t rank, uint32_t world, std::shared_ptr<AlignedBuffer> own)
    : rank_(rank),
      memory_(std::move(own)),
      own_(reinterpret_cast<Board*>(memory_->data())),
      peers_(world) {
  TUG_CHECK_GE(memory_->size_bytes(), BoardBytes(world));
  new (&own_->asleep) std::atomic<uint32_t>(1);
  for (uint32_t other = 0; other < world; ++other) {
    Page& page = OwnPage(other);
    new (&page.taken) std::atomic<uint64_t>(0);
    for (Cell& cell : page.cells) new (&cell.posted) std::atomic<uint64_t>(0);
  }
}

MessageBoard::Page& MessageBoard::OwnPage(uint32_t rank) {
  return reinterpret_cast<Page*>(own_ + 1)[rank];
}

const MessageBoard::Page& MessageBoard::PageOf(uint32_t rank) const {
  return reinterpret_cast<const Page*>(peers_[rank].board + 1)[rank_];
}

Lease MessageBoard::own() const {
  return Lease(memory_, std::span<const std::byte>(
                            memory_->data(), BoardBytes(static_cast<uint32_t>(peers_.size()))));
}

bool MessageBoard::Open(uint32_t rank, Lease board) {
  const auto address = reinterpret_cast<uintptr_t>(board.bytes().data());
  const auto world = static_cast<uint32_t>(peers_.size());
  if (board.size_bytes() != BoardBytes(world) || address % alignof(Board) != 0) return false;
  Peer& peer = peers_[rank];
  if (peer.board != nullptr) return true;
  peer.board = reinterpret_cast<const Board*>(board.bytes().data());
  peer.lease = std::move(board);
  ++opened_;
  return true;
}

// ---- posting ----

bool MessageBoard::HasCell(uint32_t rank) const {
  const Peer& peer = peers_[rank];
  if (peer.posted - peer.seen_taken < kCells) return true;
  peer.seen_taken = PageOf(rank).taken.load(std::memory_order_acquire);
  return peer.posted - peer.seen_taken < kCells;
}

void MessageBoard::Write(uint32_t rank, const WireHeader& header,
                         std::span<const std::byte> payload) {
  Peer& peer = peers_[rank];
  Page& page = OwnPage(rank);
  Cell& cell = page.cells[peer.posted % kCells];
  if (!payload.empty()) {
    std::memcpy(page.payloads[peer.posted % kCells].data(), payload.data(), payload.size());
  }
  cell.header = header;
  cell.header.payload_bytes = payload.size();
  ++peer.posted;
  cell.posted.store(peer.posted, std::memory_order_release);
  peer.nudged = false;
}

void MessageBoard::Post(uint32_t rank, const WireHeader& header,
                        std::span<const std::byte> payload) {
  TUG_CHECK_LE(payload.size(), kByteLimit);
  Peer& peer = peers_[rank];
  if (peer.waiting.empty() && HasCell(rank)) return Write(rank, header, payload);
  peer.waiting.push_back({header, {payload.begin(), payload.end()}});
  ++waiting_;
}

bool MessageBoard::CanFlush() const {
  for (uint32_t rank = 0; rank < peers_.size() && waiting_ > 0; ++rank) {
    if (!peers_[rank].waiting.empty() && HasCell(rank)) return true;
  }
  return false;
}

bool MessageBoard::Flush() {
  if (waiting_ == 0) return false;
  const size_t before = waiting_;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    std::deque<Waiting>& waiting = peers_[rank].waiting;
    while (!waiting.empty() && HasCell(rank)) {
      Write(rank, waiting.front().header, waiting.front().payload);
      waiting.pop_front();
      --waiting_;
    }
  }
  return waiting_ < before;
}

// ---- taking ----

const MessageBoard::Cell& MessageBoard::NextCell(uint32_t rank) const {
  return PageOf(rank).cells[peers_[rank].taken % kCells];
}

bool MessageBoard::HasFirst(uint32_t rank) const {
  return NextCell(rank).posted.load(std::memory_order_acquire) == peers_[rank].taken + 1;
}

std::optional<MessageBoard::Posted> MessageBoard::First(uint32_t rank) const {
  if (!HasFirst(rank)) return std::nullopt;
  std::optional<Posted> posted(std::in_place);
  posted->header = NextCell(rank).header;
  const size_t bytes = std::min<uint64_t>(posted->header.payload_bytes, kByteLimit);
  posted->payload = std::span(PageOf(rank).payloads[peers_[rank].taken % kCells]).first(bytes);
  return posted;
}

void MessageBoard::Take(uint32_t rank) {
  Peer& peer = peers_[rank];
  ++peer.taken;
  OwnPage(rank).taken.store(peer.taken, std::memory_order_release);
  peer.nudged = false;
}

// ---- sleeping ----

// Fences on both sides: either the sleeping rank sees the new message, or the writer sees that it
// sleeps.
void MessageBoard::Nudge(const std::function<void(uint32_t rank)>& wake) {
  bool fenced = false;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    if (std::exchange(peers_[rank].nudged, true)) continue;
    if (!std::exchange(fenced, true)) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (peers_[rank].board->asleep.load(std::memory_order_relaxed) != 0) wake(rank);
  }
}

void MessageBoard::SetAsleep(bool asleep) {
  own_->asleep.store(asleep ? 1 : 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool MessageBoard::AllAwake() const {
  return std::none_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.board != nullptr && peer.board->asleep.load(std::memory_order_acquire) != 0;
  });
}

}  // namespace tug
