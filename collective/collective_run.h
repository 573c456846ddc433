// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_COLLECTIVE_RUN_H_
#define TUG_COLLECTIVE_COLLECTIVE_RUN_H_

// One collective on one rank: consumes messages, writes the buffer, emits messages. No I/O, no
// clock; RankGroup checks whether peers are alive (rank_group.h).
//
//   1. A message is sent as soon as the receives and the port words it waits for are done
//      (message_plan.h).
//   2. An arrived message waits until Work applies it, the latest step first: in shared memory a
//      peer's result is then read while it is in the caches, before the next summand.
//   3. It is summed or copied from where it is: the peer's memory, or the message.
//   4. While a peer still reads part of the target, the result waits: in a staging buffer if the
//      payload is in the sender's memory (the sender waits for its release), else as the message.
// Payloads of up to kCopiedBytes are copied when sent, so that no write waits for their readers;
// longer ones are leases of the buffer.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "base/memory/lease.h"
#include "base/memory/send_buffers.h"
#include "collective/element_type.h"
#include "collective/message_plan.h"
#include "collective/read_list.h"
#include "transport/transport.h"

namespace tug {

// Buffer of a collective. `bytes` are written in place and stay valid while `owner` lives.
struct CollectiveBuffer {
  std::shared_ptr<const void> owner;
  std::span<std::byte> bytes;
};

// Not thread-safe. Leases it has handed out may end on any thread, and may outlive it.
class CollectiveRun {
 public:
  static constexpr uint64_t kCopiedBytes = 8 << 10;

  struct Sinks {
    // Sends message `number` (message_plan.h) to a rank.
    std::function<void(uint32_t rank, uint32_t number, uint64_t first_element, Lease payload)> send;
    bool send_copies = false;  // `send` copies payloads of up to kCopiedBytes before it returns
    std::function<void(const PortWord& word)> say;  // sends `word` to word.peer, about its messages
    std::function<void()> wake;                     // see ReadList; called on any thread
  };

  // `copies`: memory for small payloads; `stage`: for results that wait for readers. Both outlive
  // the run. REQUIRES: the buffer has plan->elements elements of `type`.
  CollectiveRun(std::shared_ptr<const MessagePlan> plan, uint32_t world, CollectiveBuffer buffer,
                ElementType type, Sinks sinks, SendBuffers& copies, SendBuffers& stage);
  ~CollectiveRun() {
    if (reads_ != nullptr) reads_->Close();
  }

  // Sends all messages and port words that wait for nothing. Call once.
  void Begin();

  // Accepts message `number` of `rank`; ignores a repeat. INVALID_ARGUMENT: its elements are not
  // those of the plan; the error states both.
  absl::Status OnElements(uint32_t rank, uint32_t number, uint64_t first_element, Message message);

  // Accepts a port word of `word.peer` about this rank's messages to it; ignores one that no send
  // waits for. INVALID_ARGUMENT: no such message.
  absl::Status OnPortWord(const PortWord& word);

  // Applies one ready message, or processes finished reads. False: nothing to do.
  bool Work();

  // Whether all messages are received and sent, and no peer reads the buffer.
  bool done() const { return receives_left_ == 0 && sends_unread_ == 0; }

  // Whether progress waits only for readers of the buffer; then call WantReads.
  bool waits_for_reads() const { return held_ > 0 || (receives_left_ == 0 && sends_unread_ > 0); }
  // Whether reads have finished already; otherwise `wake` is called when the next one does.
  bool WantReads() { return !own_reads_.empty() || (reads_ != nullptr && reads_->Want()); }

  // First message of the plan that has not arrived; null: all have. Work applies it on arrival,
  // since it waits for no later message.
  const PlannedMessage* next_awaited() const {
    return next_awaited_ == receives_.size() ? nullptr : &plan_->receives[next_awaited_];
  }
  // Whether a message, a port word or a finished read of the rank is missing.
  bool awaits(uint32_t rank) const { return peers_[rank].awaited > 0 || peers_[rank].unread > 0; }
  // Whether messages to the rank are pending.
  bool has_unsent(uint32_t rank) const { return peers_[rank].unsent > 0; }
  // Whether the rank waits for this one, or will.
  bool owes(uint32_t rank) const { return peers_[rank].unsent > 0 || peers_[rank].undone > 0; }

  // Whether memory of the rank was read since the last call; the rank must then be notified.
  bool TakeReadInPlace(uint32_t rank) { return std::exchange(peers_[rank].read_in_place, false); }

  const MessagePlan& plan() const { return *plan_; }
  ElementType type() const { return type_; }

 private:
  enum class State : uint8_t { kAwaited, kArrived, kHeld, kStaged, kDone };
  struct Receive {
    State state = State::kAwaited;
    Home home = Home::kReceiver;
    Lease payload;                // kArrived, kHeld
    SendBuffers::Payload staged;  // kStaged
  };
  struct Peer {
    uint32_t awaited = 0;  // messages and words that have not arrived
    uint32_t undone = 0;   // messages that are not applied yet
    uint32_t unsent = 0;
    uint32_t unread = 0;  // sent, but possibly still being read
    bool read_in_place = false;
  };

  // Inline storage, so that a short collective allocates little.
  template <typename T>
  using Few = absl::InlinedVector<T, 4>;

  std::span<std::byte> Target(const PlannedMessage& message) const;
  void Send(uint32_t send);
  bool TakeReads();
  void OnRead(uint32_t send);
  void MakeReady(uint32_t receive);
  void Apply(uint32_t receive);
  void WritePayload(uint32_t receive, std::byte* to);
  void Finish(uint32_t receive);

  const std::shared_ptr<const MessagePlan> plan_;
  const CollectiveBuffer buffer_;
  const ElementType type_;
  const Sinks sinks_;
  SendBuffers& copies_;
  SendBuffers& stage_;
  std::shared_ptr<ReadList> reads_;    // of leases of the buffer; null before the first
  Few<uint32_t> own_reads_;            // sends whose payload was copied
  std::vector<uint32_t> taken_reads_;  // scratch of TakeReads

  Few<uint32_t> send_waits_;  // counts down from the plan's values, as the next three do
  Few<uint32_t> receive_waits_;
  Few<uint32_t> receive_waits_reads_;
  Few<uint32_t> said_waits_;
  std::vector<bool> heard_;  // by awaited word: has arrived
  Few<Receive> receives_;
  Few<Peer> peers_;  // by rank
  // Receives that may be applied. Key: step, then the complement of the index.
  std::priority_queue<uint64_t, Few<uint64_t>> ready_;
  size_t next_awaited_ = 0;  // index in the plan: all earlier ones have arrived
  uint64_t receives_left_ = 0;
  uint64_t sends_unread_ = 0;  // unread or unsent
  uint64_t held_ = 0;          // receives that wait for readers of their target
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_COLLECTIVE_RUN_H_
