#ifndef TUG_SERVER_ANSWER_QUEUE_H_
#define TUG_SERVER_ANSWER_QUEUE_H_

// Pulls that a lane can answer, until their workers have the weights. Life of one:
//
//   Add -> waits -> (policy, credit) Next: the answer leaves, with a number -> Received
//
// Every worker has a queue and a credit of its own (scheduler/credit_queue.h), so that the weights
// of block 0 find at most the credit ahead of them in the worker's socket, and a slow worker holds
// up nobody else. A pull whose version does not exist yet is not here, and holds none
// (waiting_pulls.h).
//
// Credit always comes back:
//   1. the worker says, by the answer's number, that it has the weights;
//   2. or it asks for the same partition again: that answer, or the word of it, was lost, or is
//      only slow;
//   3. or nothing is heard of the answer for `lost_after`: as 2., should it never ask again, for
//      having the weights or for being gone.
// A number is given once, so a word that comes late returns nothing twice. Where an answer is slow,
// not lost (its link needs longer than comm.resend_ms for the credit), 2. sends it beside itself:
// what is counted stays within the credit, what is on the wire may be twice as much.
//
// Bounds: of one worker, one pull for each segment that a partition begins with waits or is
// outstanding; `most_workers` workers. Allocates only when there are more than ever before.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/credit_queue.h"
#include "server/waiting_pulls.h"
#include "transport/transport.h"

namespace tug {

// Pure. Not thread-safe: owned by one lane.
class AnswerQueue {
 public:
  struct Options {
    CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER;
    uint64_t credit_bytes = 0;  // of each worker at this lane; a larger answer goes alone
    size_t most_workers = 0;
    absl::Duration lost_after;
  };
  // A pull whose answer leaves now. `number`: never 0.
  struct Turn {
    WaitingPull pull;
    uint64_t number = 0;
  };

  explicit AnswerQueue(Options options) : options_(options) {}

  // Makes a queue for the worker if it has none. False if there are too many workers.
  bool Admit(PeerId worker);
  // `first_id`: the first segment of the pull; `bytes`: of the answer. False if the same pull waits
  // here already. REQUIRES: its sender has been admitted at some time.
  bool Add(WaitingPull pull, uint32_t first_id, uint64_t bytes);
  // The worker's next pull whose turn has come; to be called until there is none.
  std::optional<Turn> Next(PeerId worker, absl::Time now);
  // From outside: false if no such answer is outstanding.
  bool Received(PeerId worker, uint64_t number);
  // Of each worker from now on: a turn of any worker may have come.
  void SetCredit(uint64_t credit_bytes);
  // Appends all workers that have a queue.
  void ListWorkers(std::vector<PeerId>& workers) const;
  // Takes back the credit of answers that are lost (3.), and appends the workers that have some
  // again to `workers`.
  void OnTick(absl::Time now, std::vector<PeerId>& workers);

  // Of the worker that had most, at a time: at most max(credit_bytes, largest answer) of the
  // largest credit so far. What was asked for again counts once.
  uint64_t most_outstanding_bytes() const { return most_outstanding_bytes_; }
  uint64_t outstanding_bytes(PeerId worker) const;
  // Of all workers: what holds credit, and what waits for it. As many additions as workers.
  uint64_t outstanding_bytes() const;
  uint64_t waiting_bytes() const;

 private:
  using Ticket = CreditQueue::Ticket;
  struct Answer {
    WaitingPull pull;  // empty once the answer has left
    uint32_t first_id = 0;
    uint32_t sending = 0;  // upper half of its number; 0: waits, or nothing is here
    absl::Time sent_at;
  };
  struct Worker {
    explicit Worker(const Options& options)
        : queue(PolicyOf(options.scheduler), options.credit_bytes) {}
    bool idle() const { return queue.waiting() == 0 && queue.outstanding_bytes() == 0; }
    void Free(Ticket ticket);

    CreditQueue queue;
    std::vector<Answer> answers;                             // by ticket
    absl::flat_hash_map<uint32_t, Ticket> at_first_segment;  // of all but free ones
    uint32_t sendings = 0;
  };

  Worker* Find(PeerId worker) const;

  Options options_;
  std::unordered_map<PeerId, std::unique_ptr<Worker>> workers_;
  uint64_t most_outstanding_bytes_ = 0;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace tug

#endif  // TUG_SERVER_ANSWER_QUEUE_H_
