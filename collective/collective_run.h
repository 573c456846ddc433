#ifndef TUG_COLLECTIVE_COLLECTIVE_RUN_H_
#define TUG_COLLECTIVE_COLLECTIVE_RUN_H_

// One collective on one rank: takes messages in, writes the buffer, says what is to be sent. No
// I/O, no clock; whether peers are alive is RankGroup's business (rank_group.h).
//
//   1. A message is sent as soon as the receives it waits for are done, and the words it waits for
//      are heard (message_plan.h).
//   2. What arrives waits until it is asked to be applied (Work), that of the latest step first: on
//      shared memory a peer's result is taken while it is in the caches, before the next summand.
//   3. It is summed, or copied, from where it lies: the peer's memory, or the message.
//   4. Where part of the target is still being read by a peer, the result waits: computed into
//      memory beside the buffer if the payload is a peer's (who waits for it in turn), else as the
//      message.
// Payloads of up to kCopiedBytes are copied as they are sent, so that nobody has to wait for their
// readers; longer ones are leases of the buffer.

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
#include "base/lease.h"
#include "collective/element_type.h"
#include "collective/message_plan.h"
#include "collective/read_list.h"
#include "exchange/send_buffers.h"
#include "transport/transport.h"

namespace tug {

// What a collective works on: `bytes` are written in place and stay valid while `owner` lives.
struct CollectiveBuffer {
  std::shared_ptr<const void> owner;
  std::span<std::byte> bytes;
};

// Not thread-safe; leases that it has handed out may end on any thread, and later than it.
class CollectiveRun {
 public:
  static constexpr uint64_t kCopiedBytes = 8 << 10;

  struct Sinks {
    // To a rank: message number `number`, at `place` (message_plan.h).
    std::function<void(uint32_t rank, uint32_t number, uint64_t place, Lease payload)> send;
    bool send_copies = false;  // `send` has copied payloads of up to kCopiedBytes when it returns
    std::function<void(const PortWord& word)> say;  // to word.peer, about its messages
    std::function<void()> wake;                     // see ReadList; on any thread
  };

  // `copies`, `stage`: memory for small payloads and for results that wait; both outlive the run.
  // REQUIRES: the buffer has plan->elements elements of `type`.
  CollectiveRun(std::shared_ptr<const MessagePlan> plan, uint32_t world, CollectiveBuffer buffer,
                ElementType type, Sinks sinks, SendBuffers& copies, SendBuffers& stage);
  ~CollectiveRun() {
    if (reads_ != nullptr) reads_->Close();
  }

  // Says and sends what waits for nothing. Once.
  void Begin();

  // Takes message `number` of `rank`; a repeat is ignored. INVALID_ARGUMENT: not what the plan has
  // under that number; says both.
  absl::Status OnElements(uint32_t rank, uint32_t number, uint64_t place, Message message);

  // Takes a word of `word.peer` about our messages to it; one that nobody waits for is ignored.
  // INVALID_ARGUMENT: there is no such message.
  absl::Status OnPortWord(const PortWord& word);

  // Applies one message that is at hand, or takes note of what was read; false: there is nothing.
  bool Work();

  // Whether all is received and sent, and nobody reads the buffer any more.
  bool done() const { return receives_left_ == 0 && sends_unread_ == 0; }

  // Whether only readers of the buffer are waited for, by something: whether to ask WantReads.
  bool waits_for_reads() const { return held_ > 0 || (receives_left_ == 0 && sends_unread_ > 0); }
  // Whether there are such already; else `wake` is called at the next one.
  bool WantReads() { return !own_reads_.empty() || (reads_ != nullptr && reads_->Want()); }

  // The message that is the first in the plan of those that have not come; none if all have. It is
  // applied by Work as soon as it comes, since it waits for none that is to come.
  const PlannedMessage* next_awaited() const {
    return next_awaited_ == receives_.size() ? nullptr : &plan_->receives[next_awaited_];
  }
  // Whether something of the rank is missing: a message, a word, or that it has read one.
  bool awaits(uint32_t rank) const { return peers_[rank].awaited > 0 || peers_[rank].unread > 0; }
  // Whether something is still to be sent to the rank.
  bool has_unsent(uint32_t rank) const { return peers_[rank].unsent > 0; }
  // Whether the rank waits for us, or will.
  bool owes(uint32_t rank) const { return peers_[rank].unsent > 0 || peers_[rank].undone > 0; }

  // Whether something of the rank was read in its memory since the last call: it is to be told.
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
    uint32_t undone = 0;   // messages that are not applied
    uint32_t unsent = 0;
    uint32_t unread = 0;  // sent, and perhaps being read
    bool read_in_place = false;
  };

  // So that a short collective allocates little.
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
  std::shared_ptr<ReadList> reads_;    // of leases of the buffer; none before the first
  Few<uint32_t> own_reads_;            // sends whose payload was copied
  std::vector<uint32_t> taken_reads_;  // scratch of TakeReads

  Few<uint32_t> send_waits_;           // as in the plan, counted down
  Few<uint32_t> receive_waits_;        // the same
  Few<uint32_t> receive_waits_reads_;  // the same
  Few<uint32_t> said_waits_;           // the same
  std::vector<bool> heard_;            // by awaited word
  Few<Receive> receives_;
  Few<Peer> peers_;  // by rank
  // Of receives that may be applied: step, then the index counted from above.
  std::priority_queue<uint64_t, Few<uint64_t>> ready_;
  size_t next_awaited_ = 0;  // index in the plan: those before have arrived
  uint64_t receives_left_ = 0;
  uint64_t sends_unread_ = 0;  // or unsent
  uint64_t held_ = 0;          // receives that wait for readers
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_COLLECTIVE_RUN_H_
