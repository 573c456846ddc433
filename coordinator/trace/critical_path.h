// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_TRACE_CRITICAL_PATH_H_
#define TUG_COORDINATOR_TRACE_CRITICAL_PATH_H_

// Explains the duration of a step: the chain of dependencies from its end back to its beginning,
// over all processes of a job.
//
// A step of the job lasts from the end of the previous step, at its last worker, to its own end at
// its last worker, without time at the gate. The chain is found backwards, as in Böhme, Wolf, de
// Supinski, Schulz and Geimer 2012, "Scalable Critical-Path Based Performance Analysis" (IPDPS):
// work is followed to its beginning, and where a process waited, the chain continues at the process
// that ended the wait.
//
//   1. A worker computes a block: to the beginning of the pass. It waits for weights: to the pull
//      of that block that arrived last.
//   2. A pull: from its arrival back to when the lane began to answer. Before that the answer
//      waited for the lane, which did other work; for the worker to acknowledge earlier weights
//      (continue with their pull); for its request (continue at the worker); else for its version.
//   3. A version: at the pulled segment that was updated last. Before that: the lane's other work;
//      with clipping, the last sum of any lane; else the sum that completed the segment, of the
//      worker whose push came last.
//   4. A sum: back over the lane's work that it queued behind, and the push in flight.
//   5. The beginning of a push: back over what its worker encoded before it. The rest of its wait
//      is for credit: continue with the push whose acknowledgement returned it. Else at the worker,
//      when its gradient was ready.
//
// Time that no recorded span explains is a part of its own. So parts are adjacent, and add up to
// the step's duration. Times of two nodes are compared within the error bounds of their clocks: a
// cause that seems to end later than its effect, by more than both bounds, is discarded.
//
// Limitation: a message that has arrived, but that the lane has not begun to process, counts as in
// flight, unless the lane is seen doing other work.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/progress/trace_collector.h"

namespace tug {

enum class PathWork : uint8_t {
  kForward,
  kBackward,
  kEvaluate,
  kWait,  // for weights without a recorded sender, or for a gradient buffer
  kEncode,
  kQueue,  // push waits for its turn and for credit
  kPush,   // push in flight to a lane
  kSum,
  kOptimizer,
  kLanes,   // message from another lane: its norm, or its part of a sum
  kHold,    // answer waits for its turn
  kServe,   // answer is encoded and handed over
  kPull,    // weights in flight to a worker
  kAsk,     // request in flight to a lane
  kAnswer,  // acknowledgement in flight
  kDecode,  // includes waking the waiting thread
  kUnexplained,
};
inline constexpr size_t kPathWorks = static_cast<size_t>(PathWork::kUnexplained) + 1;
inline constexpr std::array<const char*, kPathWorks> kPathWorkNames = {
    "forward", "backward", "evaluate",  "wait",   "encode",     "queue",
    "push",    "sum",      "optimizer", "lanes",  "hold",       "serve",
    "pull",    "ask",      "answer",    "decode", "unexplained"};

// One link of a chain; times in ns since the Unix epoch, in the coordinator's clock.
struct PathPart {
  PathWork what = PathWork::kUnexplained;
  std::string who;    // "worker 2", "server 0", "link worker 2 to server 0"
  std::string block;  // name; empty: no block
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  friend bool operator==(const PathPart&, const PathPart&) = default;
};

struct StepPath {
  uint64_t clock = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<PathPart> parts;  // in order of time, each starts where the previous one ends
};

// Paths by clock, of the steps in the range for which a worker's step end was recorded. Pure.
std::vector<StepPath> CriticalPathsOf(const JobTrace& trace);

}  // namespace tug

#endif  // TUG_COORDINATOR_TRACE_CRITICAL_PATH_H_
