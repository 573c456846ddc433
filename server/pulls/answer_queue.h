// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PULLS_ANSWER_QUEUE_H_
#define TUG_SERVER_PULLS_ANSWER_QUEUE_H_

// Queue of pulls that a lane can answer, until their workers have received the weights:
//
//   Add -> waits -> (policy, credit) Next: the answer leaves, with a number -> Received
//
// Every worker has its own queue and credit (scheduler/credit_queue.h): block 0 waits for at most
// the credit in the worker's socket, and a slow worker delays no other. A pull whose version does
// not exist yet is not queued here and takes no credit (waiting_pulls.h).
//
// Credit always returns:
//   1. the worker acknowledges the answer by its number;
//   2. or it asks for the same partition again: the answer or its acknowledgement was lost, or is
//      only slow;
//   3. or the answer is not acknowledged within `lost_after`: then as 2. This covers a worker that
//      never asks again, because it has the weights or has left.
// A number is used once, so a late acknowledgement does not return credit twice. If an answer is
// slow but not lost (its link needs longer than comm.resend_ms for the credit), 2. sends it again:
// the counted bytes stay within the credit, but up to twice as many are on the wire.
//
// Bounds: `max_workers` workers; per worker, one waiting or outstanding pull for each segment that
// a partition begins with. Allocates only beyond previous peaks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/credit_queue.h"
#include "server/pulls/waiting_pulls.h"
#include "transport/transport.h"

namespace tug {

// Pure. Not thread-safe: owned by one lane.
class AnswerQueue {
 public:
  struct Options {
    CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER;
    uint64_t credit_bytes = 0;  // per worker at this lane; a larger answer goes alone
    size_t max_workers = 0;
    absl::Duration lost_after;
  };
  // A pull to answer now. `number` is never 0.
  struct Turn {
    WaitingPull pull;
    uint64_t number = 0;
  };

  explicit AnswerQueue(Options options) : options_(options) {}

  // Creates a queue for a new worker. False if there are too many workers.
  bool Admit(PeerId worker);
  // `first_id`: first segment of the pull; `bytes`: size of the answer. False if the same pull
  // already waits. REQUIRES: its sender has been admitted before.
  bool Add(WaitingPull pull, uint32_t first_id, uint64_t bytes);
  // The worker's next pull that order and credit allow; call until it returns none.
  std::optional<Turn> Next(PeerId worker, absl::Time now);
  // The worker acknowledged `number`, which may be invalid. False if no such answer is outstanding.
  bool Received(PeerId worker, uint64_t number);
  // Applies to every worker at once; call Next for each (ListWorkers).
  void SetCredit(uint64_t credit_bytes);
  // Appends all workers that have a queue.
  void ListWorkers(std::vector<PeerId>& workers) const;
  // Releases the credit of lost answers (3.), and appends the workers that got some back to
  // `workers`.
  void OnTick(absl::Time now, std::vector<PeerId>& workers);

  // Peak over workers: at most max(credit_bytes, largest answer), for the largest credit so far. An
  // answer that was requested again counts once.
  uint64_t most_outstanding_bytes() const { return most_outstanding_bytes_; }
  uint64_t outstanding_bytes(PeerId worker) const;
  // Totals over all workers: bytes that hold credit, and bytes that wait for it. Linear in the
  // workers.
  uint64_t outstanding_bytes() const;
  uint64_t waiting_bytes() const;

 private:
  using Ticket = CreditQueue::Ticket;
  struct Answer {
    WaitingPull pull;  // empty once the answer has left
    uint32_t first_id = 0;
    uint32_t sending = 0;  // upper half of its number; 0: waits, or the slot is free
    absl::Time sent_at;
  };
  struct Worker {
    explicit Worker(const Options& options)
        : queue(PolicyOf(options.scheduler), options.credit_bytes) {}
    bool idle() const { return queue.waiting() == 0 && queue.outstanding_bytes() == 0; }
    void Free(Ticket ticket);

    CreditQueue queue;
    std::vector<Answer> answers;                             // by ticket
    absl::flat_hash_map<uint32_t, Ticket> at_first_segment;  // all except free ones
    uint32_t sendings = 0;
  };

  Worker* Find(PeerId worker) const;

  Options options_;
  std::unordered_map<PeerId, std::unique_ptr<Worker>> workers_;
  uint64_t most_outstanding_bytes_ = 0;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace tug

#endif  // TUG_SERVER_PULLS_ANSWER_QUEUE_H_
