// SPDX-License-Identifier: Apache-2.0
#include "scheduler/credit_queue.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tug {

CreditQueue::Ticket CreditQueue::Enqueue(const Entry& entry) {
  Ticket ticket = static_cast<Ticket>(slots_.size());
  if (free_.empty()) {
    slots_.emplace_back();
  } else {
    ticket = free_.back();
    free_.pop_back();
  }
  slots_[ticket].entry = entry;
  Append(ticket);
  return ticket;
}

std::optional<uint64_t> CreditQueue::Next() {
  if (waiting_ == 0) return std::nullopt;
  const uint32_t list = NextList();
  const Ticket ticket = lists_[list].first;
  const Entry& entry = slots_[ticket].entry;
  if (outstanding_bytes_ > 0 && outstanding_bytes_ + entry.bytes > credit_bytes_) {
    return std::nullopt;
  }
  Unlink(ticket);
  slots_[ticket].state = State::kOutstanding;
  outstanding_bytes_ += entry.bytes;
  most_outstanding_bytes_ = std::max(most_outstanding_bytes_, outstanding_bytes_);
  const Ticket first = lists_[list].first;
  const bool more = first != kNone && slots_[first].entry.group == entry.group;
  begun_ = policy_.whole_blocks && more ? list : kNone;
  return entry.item;
}

void CreditQueue::Shrink(Ticket ticket, uint64_t bytes) {
  Slot& slot = slots_[ticket];
  TUG_CHECK(slot.state == State::kOutstanding || slot.state == State::kReceived);
  TUG_CHECK_LE(bytes, slot.entry.bytes);
  if (slot.state == State::kOutstanding) outstanding_bytes_ -= slot.entry.bytes - bytes;
  slot.entry.bytes = bytes;
}

void CreditQueue::Received(Ticket ticket) {
  Slot& slot = slots_[ticket];
  TUG_CHECK(slot.state != State::kFree);
  if (slot.state == State::kWaiting) Unlink(ticket);
  if (slot.state == State::kOutstanding) outstanding_bytes_ -= slot.entry.bytes;
  slot.state = State::kReceived;
}

void CreditQueue::EnqueueAgain(Ticket ticket) {
  TUG_CHECK(slots_[ticket].state == State::kReceived);
  slots_[ticket].entry.group = kAlone | ticket;
  Append(ticket);
}

void CreditQueue::Committed(Ticket ticket) {
  Received(ticket);
  slots_[ticket].state = State::kFree;
  free_.push_back(ticket);
}

void CreditQueue::Append(Ticket ticket) {
  Slot& slot = slots_[ticket];
  const uint32_t list = ListOf(slot.entry);
  if (list >= lists_.size()) {
    lists_.resize(list + 1);
    filled_.resize(list / 64 + 1);
  }
  List& ends = lists_[list];
  slot.state = State::kWaiting;
  slot.before = ends.last;
  slot.after = kNone;
  (ends.last == kNone ? ends.first : slots_[ends.last].after) = ticket;
  ends.last = ticket;
  filled_[list / 64] |= uint64_t{1} << (list % 64);
  ++waiting_;
  waiting_bytes_ += slot.entry.bytes;
}

void CreditQueue::Unlink(Ticket ticket) {
  const Slot& slot = slots_[ticket];
  const uint32_t list = ListOf(slot.entry);
  List& ends = lists_[list];
  // Withdrawing the last waiting partition of a begun block ends the block.
  const bool ends_block = slot.after == kNone || slots_[slot.after].entry.group != slot.entry.group;
  if (list == begun_ && ends.first == ticket && ends_block) begun_ = kNone;
  (slot.before == kNone ? ends.first : slots_[slot.before].after) = slot.after;
  (slot.after == kNone ? ends.last : slots_[slot.after].before) = slot.before;
  if (ends.first == kNone) filled_[list / 64] &= ~(uint64_t{1} << (list % 64));
  --waiting_;
  waiting_bytes_ -= slot.entry.bytes;
}

uint32_t CreditQueue::NextList() const {
  if (begun_ != kNone) return begun_;
  uint32_t word = 0;
  while (filled_[word] == 0) ++word;
  return word * 64 + static_cast<uint32_t>(std::countr_zero(filled_[word]));
}

}  // namespace tug
