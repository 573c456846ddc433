// SPDX-License-Identifier: Apache-2.0
#include "collective/collective_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tug {
namespace {

uint64_t ReadyKey(uint32_t step, uint32_t receive) {
  return (uint64_t{step} << 32) | (~uint32_t{0} - receive);
}
uint32_t ReceiveOfKey(uint64_t key) { return ~uint32_t{0} - static_cast<uint32_t>(key); }

}  // namespace

CollectiveRun::CollectiveRun(std::shared_ptr<const MessagePlan> plan, uint32_t world,
                             CollectiveBuffer buffer, ElementType type, Sinks sinks,
                             SendBuffers& copies, SendBuffers& stage)
    : plan_(std::move(plan)),
      buffer_(std::move(buffer)),
      type_(type),
      sinks_(std::move(sinks)),
      copies_(copies),
      stage_(stage),
      send_waits_(plan_->send_waits.begin(), plan_->send_waits.end()),
      receive_waits_(plan_->receive_waits.begin(), plan_->receive_waits.end()),
      receive_waits_reads_(plan_->receive_waits_reads.begin(), plan_->receive_waits_reads.end()),
      said_waits_(plan_->said_waits.begin(), plan_->said_waits.end()),
      heard_(plan_->awaited.size()),
      receives_(plan_->receives.size()),
      peers_(world),
      receives_left_(plan_->receives.size()),
      sends_unread_(plan_->sends.size()) {
  TUG_CHECK_EQ(buffer_.bytes.size(), plan_->elements * ElementBytes(type));
  for (uint32_t rank = 0; rank < world; ++rank) {
    const auto sends = static_cast<uint32_t>(plan_->sends_to[rank].size());
    const auto receives = static_cast<uint32_t>(plan_->receives_from[rank].size());
    peers_[rank] = {.awaited = receives, .undone = receives, .unsent = sends};
  }
  for (const PortWord& word : plan_->awaited) ++peers_[word.peer].awaited;
}

std::span<std::byte> CollectiveRun::Target(const PlannedMessage& message) const {
  const size_t size = ElementBytes(type_);
  return buffer_.bytes.subspan(message.begin * size, message.elements() * size);
}

// ---- sending ----

void CollectiveRun::Begin() {
  for (uint32_t word = 0; word < plan_->said.size(); ++word) {
    if (plan_->said_waits[word] == 0) sinks_.say(plan_->said[word]);
  }
  for (uint32_t send = 0; send < plan_->sends.size(); ++send) {
    if (plan_->send_waits[send] == 0) Send(send);
  }
}

void CollectiveRun::Send(uint32_t send) {
  const PlannedMessage& message = plan_->sends[send];
  const std::span<std::byte> bytes = Target(message);
  Peer& peer = peers_[message.peer];
  --peer.unsent;
  ++peer.unread;
  peer.read_in_place = false;  // this message implies the notice
  Lease payload;
  if (bytes.size() <= kCopiedBytes && sinks_.send_copies) {
    payload = Lease(nullptr, bytes);
    own_reads_.push_back(send);
  } else if (bytes.size() <= kCopiedBytes) {
    SendBuffers::Payload copy = copies_.Take(bytes.size());
    std::memcpy(copy.bytes.data(), bytes.data(), bytes.size());
    payload = std::move(copy.lease);
    own_reads_.push_back(send);
  } else {
    if (reads_ == nullptr) reads_ = std::make_shared<ReadList>(sinks_.wake);
    payload = ReadList::LeaseOf(reads_, send, buffer_.owner, bytes);
  }
  sinks_.send(message.peer, message.number, message.begin, std::move(payload));
}

absl::Status CollectiveRun::OnPortWord(const PortWord& word) {
  if (word.number >= plan_->sends_to[word.peer].size()) {
    return absl::InvalidArgumentError(absl::StrCat("refers to message ", word.number,
                                                   ", but this rank sends it ",
                                                   plan_->sends_to[word.peer].size(), " messages"));
  }
  const auto found = std::find(plan_->awaited.begin(), plan_->awaited.end(), word);
  if (found == plan_->awaited.end()) return absl::OkStatus();
  const auto index = static_cast<uint32_t>(found - plan_->awaited.begin());
  if (heard_[index]) return absl::OkStatus();
  heard_[index] = true;
  --peers_[word.peer].awaited;
  for (const uint32_t send : plan_->sends_after_words[index]) {
    if (--send_waits_[send] == 0) Send(send);
  }
  return absl::OkStatus();
}

bool CollectiveRun::TakeReads() {
  TUG_CHECK(taken_reads_.empty());
  if (reads_ != nullptr) reads_->Take(taken_reads_);
  const Few<uint32_t> own(own_reads_.begin(), own_reads_.end());
  own_reads_.clear();
  const bool any = !taken_reads_.empty() || !own.empty();
  for (const uint32_t send : taken_reads_) OnRead(send);
  for (const uint32_t send : own) OnRead(send);
  taken_reads_.clear();
  return any;
}

void CollectiveRun::OnRead(uint32_t send) {
  --sends_unread_;
  --peers_[plan_->sends[send].peer].unread;
  for (const uint32_t receive : plan_->receives_after_reads[send]) {
    if (--receive_waits_reads_[receive] > 0) continue;
    Receive& held = receives_[receive];
    if (held.state == State::kHeld) {
      --held_;
      Apply(receive);
    } else if (held.state == State::kStaged) {
      --held_;
      const std::span<std::byte> target = Target(plan_->receives[receive]);
      std::memcpy(target.data(), held.staged.bytes.data(), target.size());
      held.staged = {};
      Finish(receive);
    }
  }
}

// ---- receiving ----

absl::Status CollectiveRun::OnElements(uint32_t rank, uint32_t number, uint64_t first_element,
                                       Message message) {
  const std::span<const uint32_t> expected = plan_->receives_from[rank];
  const uint64_t count = message.payload.size_bytes() / ElementBytes(type_);
  if (number >= expected.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sends message ", number, ", but this rank expects ", expected.size(), " messages"));
  }
  const uint32_t receive = expected[number];
  const PlannedMessage& planned = plan_->receives[receive];
  if (first_element != planned.begin || message.payload.size_bytes() != Target(planned).size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sends elements ", first_element, " to ", first_element + count, " as message ", number,
        ", but this rank expects ", planned.begin, " to ", planned.end));
  }
  Receive& arrived = receives_[receive];
  if (arrived.state != State::kAwaited) return absl::OkStatus();
  --peers_[rank].awaited;
  arrived.state = State::kArrived;
  arrived.home = message.home;
  arrived.payload = std::move(message.payload);
  while (next_awaited_ < receives_.size() && receives_[next_awaited_].state != State::kAwaited) {
    ++next_awaited_;
  }
  if (receive_waits_[receive] == 0) MakeReady(receive);
  return absl::OkStatus();
}

void CollectiveRun::MakeReady(uint32_t receive) {
  ready_.push(ReadyKey(plan_->receives[receive].step, receive));
}

bool CollectiveRun::Work() {
  const bool any_read = TakeReads();
  if (ready_.empty()) return any_read;
  const uint32_t receive = ReceiveOfKey(ready_.top());
  ready_.pop();
  Apply(receive);
  return true;
}

void CollectiveRun::Apply(uint32_t receive) {
  Receive& arrived = receives_[receive];
  const PlannedMessage& message = plan_->receives[receive];
  if (receive_waits_reads_[receive] == 0) {
    WritePayload(receive, Target(message).data());
    Finish(receive);
    return;
  }
  ++held_;
  if (arrived.home == Home::kReceiver) {
    arrived.state = State::kHeld;
    return;
  }
  arrived.staged = stage_.Take(arrived.payload.size_bytes());
  WritePayload(receive, arrived.staged.bytes.data());
  arrived.state = State::kStaged;
}

// Writes the target's new contents to `to` and releases the payload.
void CollectiveRun::WritePayload(uint32_t receive, std::byte* to) {
  Receive& arrived = receives_[receive];
  const PlannedMessage& message = plan_->receives[receive];
  const std::byte* const from = arrived.payload.bytes().data();
  if (message.reduces) {
    AddElements(type_, Target(message).data(), from, to, message.elements());
  } else {
    std::memcpy(to, from, arrived.payload.size_bytes());
  }
  // A copied payload has no waiting sender.
  const bool waited_for =
      arrived.home == Home::kSender && arrived.payload.size_bytes() > kCopiedBytes;
  if (waited_for) peers_[message.peer].read_in_place = true;
  arrived.payload = Lease();
}

void CollectiveRun::Finish(uint32_t receive) {
  receives_[receive].state = State::kDone;
  --receives_left_;
  --peers_[plan_->receives[receive].peer].undone;
  for (const uint32_t word : plan_->said_after[receive]) {
    if (--said_waits_[word] == 0) sinks_.say(plan_->said[word]);
  }
  for (const uint32_t send : plan_->sends_after[receive]) {
    if (--send_waits_[send] == 0) Send(send);
  }
  for (const uint32_t after : plan_->receives_after[receive]) {
    if (--receive_waits_[after] == 0 && receives_[after].state == State::kArrived) MakeReady(after);
  }
}

}  // namespace tug
