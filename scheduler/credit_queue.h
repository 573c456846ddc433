#ifndef TUG_SCHEDULER_CREDIT_QUEUE_H_
#define TUG_SCHEDULER_CREDIT_QUEUE_H_

// Order and amount of what is on its way in one direction. Life of a partition:
//
//   Enqueue -> waits -> (policy, credit) Next -> outstanding -> Received -> Committed
//                ^                                                 |
//                +------------------- EnqueueAgain ----------------+
//
//  - Order: the policy's (policy.h). Blocks of equal priority, and partitions of a block, leave in
//    the order they came.
//  - Amount: a partition leaves only while the bytes outstanding, with its own, fit the credit; one
//    larger than the whole credit leaves when nothing else is outstanding. So outstanding bytes are
//    at most max(credit, largest partition), and under BYTESCHEDULER that is all that a partition
//    finds ahead of it of less urgent ones. The first in order is never passed over for a smaller
//    one, so none waits for ever.
//  - Received and Committed may come early, twice or in any order: credit returns exactly once, and
//    what waits is withdrawn.
//
// Priorities are small numbers (blocks): each has a list of its own, and a bit that says whether
// anything is in it. So every call costs the same however many partitions wait, and nothing is
// allocated once the tables have grown. A partition costs 0.1 microseconds, 0.05 of them CPU time,
// with 10,000 waiting over 200 blocks (credit_queue_benchmark, on a loaded machine of 2 cores).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/policy.h"

namespace tug {

// Pure: no thread, no clock. Not thread-safe.
class CreditQueue {
 public:
  // Names a partition from Enqueue to Committed; then another may get the number.
  using Ticket = uint32_t;

  struct Entry {
    uint32_t priority = 0;  // smaller is more urgent; the block's number
    uint64_t group = 0;     // below kAlone; the same for the partitions of one block's sending
    uint64_t bytes = 0;     // of the credit
    uint64_t item = 0;      // the caller's name for it
  };

  // REQUIRES: `policy` is one of kSchedulingPolicies.
  CreditQueue(const SchedulingPolicy& policy, uint64_t credit_bytes)
      : policy_(policy), credit_bytes_(credit_bytes) {}

  Ticket Enqueue(const Entry& entry);
  // The item of the next partition allowed to leave, which is outstanding from now.
  std::optional<uint64_t> Next();
  // It holds less of the credit from now on: it has turned out to be so many bytes.
  // REQUIRES: it does not wait, and held no less.
  void Shrink(Ticket ticket, uint64_t bytes);
  // The receiver has taken it over, or it was lost: it holds no credit and does not wait.
  void Received(Ticket ticket);
  // It is to leave once more, after the block's that wait, as a block of its own.
  // REQUIRES: received.
  void EnqueueAgain(Ticket ticket);
  // Nothing more comes of it: as Received, and the ticket is given up.
  void Committed(Ticket ticket);

  uint64_t credit_bytes() const { return credit_bytes_; }
  // From now on. What is outstanding beyond a smaller one comes back before anything leaves.
  void set_credit_bytes(uint64_t credit_bytes) { credit_bytes_ = credit_bytes; }
  uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  // The most at a time, ever.
  uint64_t most_outstanding_bytes() const { return most_outstanding_bytes_; }
  size_t waiting() const { return waiting_; }
  uint64_t waiting_bytes() const { return waiting_bytes_; }
  bool IsOutstanding(Ticket ticket) const { return slots_[ticket].state == State::kOutstanding; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint64_t kAlone = uint64_t{1} << 63;  // | ticket: a group of one
  enum class State : uint8_t { kFree, kWaiting, kOutstanding, kReceived };
  struct Slot {
    Entry entry;
    State state = State::kFree;
    Ticket before = kNone;  // neighbours in its list, while it waits
    Ticket after = kNone;
  };
  struct List {
    Ticket first = kNone;
    Ticket last = kNone;
  };

  uint32_t ListOf(const Entry& entry) const { return policy_.by_priority ? entry.priority : 0; }
  void Append(Ticket ticket);
  void Unlink(Ticket ticket);
  // Where the next partition leaves from. REQUIRES: something waits.
  uint32_t NextList() const;

  const SchedulingPolicy& policy_;
  uint64_t credit_bytes_;
  uint64_t outstanding_bytes_ = 0;
  uint64_t most_outstanding_bytes_ = 0;
  size_t waiting_ = 0;
  uint64_t waiting_bytes_ = 0;
  std::vector<Slot> slots_;  // by ticket
  std::vector<Ticket> free_;
  std::vector<List> lists_;       // by priority
  std::vector<uint64_t> filled_;  // a bit per list
  uint32_t begun_ = kNone;        // whole_blocks: the list whose first block has begun
};

}  // namespace tug

#endif  // TUG_SCHEDULER_CREDIT_QUEUE_H_
