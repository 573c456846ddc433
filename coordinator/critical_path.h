#ifndef TUG_COORDINATOR_CRITICAL_PATH_H_
#define TUG_COORDINATOR_CRITICAL_PATH_H_

// Why a step took as long as it did: the chain of what waited for what, from its end back to its
// beginning, over all processes of a job.
//
// A step of the job lasts from the end of the step before, at the worker that was last with it, to
// its own end at the worker that is last (time at the gate left out). The chain is found backwards,
// as in Böhme, Wolf, de Supinski, Schulz and Geimer 2012, "Scalable Critical-Path Based Performance
// Analysis" (IPDPS): work is followed to its beginning, and where a process waited, the chain goes
// on at the process that ended the wait.
//
//   1. A worker computes a block: to the beginning of the pass. It waits for weights: at the pull
//      of that block that arrived last.
//   2. A pull, from its arrival to the lane's beginning to answer. Before that the answer waited:
//      for the lane, which was at other work; for the worker to acknowledge weights sent before
//      (on with their pull); for its request (on with the worker); else for its version.
//   3. A version, at the segment of the pull that was updated last; before that the lane's other
//      work; with clipping, the sum of any lane that came last; else the sum that completed the
//      segment: of the worker whose push came last.
//   4. A sum, back over the lane's work that it was behind, and the push on its way.
//   5. A push's beginning, back over what its worker encoded before it; what is left of its wait is
//      for credit, and goes on with the push whose answer brought it. Else at the worker, when its
//      gradient was there.
//
// What nothing recorded explains is a part of its own. So the parts touch, and together they are as
// long as the step. Times of two nodes are compared with the bounds of their clocks: a cause that
// seems to end later than its effect, by more than the two bounds, is none.
//
// What stays unseen: a message that has arrived and a lane has not begun with counts as on its way,
// unless the lane is seen to be at other work.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/trace_collector.h"

namespace tug {

enum class PathWork : uint8_t {
  kForward,
  kBackward,
  kEvaluate,
  kWait,  // for weights that nobody is seen to send, or for a gradient's buffer
  kEncode,
  kQueue,  // for its turn and for credit
  kPush,   // on its way to a lane
  kSum,
  kOptimizer,
  kLanes,   // word from another lane: of its norm, or of its part of a sum
  kHold,    // an answer waits for its turn
  kServe,   // an answer is encoded and handed over
  kPull,    // on its way to a worker
  kAsk,     // a request on its way to a lane
  kAnswer,  // an acknowledgement on its way
  kDecode,  // and the waking up of who waited
  kUnexplained,
};
inline constexpr size_t kPathWorks = static_cast<size_t>(PathWork::kUnexplained) + 1;
inline constexpr std::array<const char*, kPathWorks> kPathWorkNames = {
    "forward", "backward", "evaluate",  "wait",   "encode",     "queue",
    "push",    "sum",      "optimizer", "lanes",  "hold",       "serve",
    "pull",    "ask",      "answer",    "decode", "unexplained"};

// One link of a chain, by the coordinator's clock, ns since the Unix epoch.
struct PathPart {
  PathWork what = PathWork::kUnexplained;
  std::string who;    // "worker 2", "server 0", "link worker 2 to server 0"
  std::string block;  // its name; empty: of none
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  friend bool operator==(const PathPart&, const PathPart&) = default;
};

struct StepPath {
  uint64_t clock = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<PathPart> parts;  // in order of time, each from the end of the one before
};

// By clock: the steps of the range of which some worker's end was recorded. Pure.
std::vector<StepPath> CriticalPathsOf(const JobTrace& trace);

}  // namespace tug

#endif  // TUG_COORDINATOR_CRITICAL_PATH_H_
