// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_WATCH_TEXT_H_
#define TUG_COORDINATOR_OBSERVE_WATCH_TEXT_H_

#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// Activity of nodes in words, for `tug status --watch` and the live page. Pure, thread-safe.

// "waiting for nodes", "running", "done", "failed"
std::string PhaseText(Phase phase);

// "all-reduce by ring between 4 ranks"; without the algorithm until a sum is reduced, and for one
// rank. Empty: the job does not all-reduce.
std::string AllReduceText(const StatusReply& status);

// "waiting for 1 server to join, for 12 s: the job then rolls back to ..."; empty: not waiting.
std::string WaitText(const StatusReply& status);

// "computing h.3"; "waiting 0.8 s for h.3: sum, missing virtual worker 2 (worker-1)"; for a server
// "waiting 0.8 s for pushes of h.3: virtual worker 2 (worker-1)", in an all-reduce "for gradients
// of h.3". Empty: unknown.
std::string ActivityText(const NodeStatus& node, const StatusReply& status);

// Nodes that hold up the others, one sentence each: silent nodes, then late workers, both in the
// order of the status; empty: none.
//   "server-1: no heartbeat for 2.3 s"
//   "worker-2 is slow: step 118, others at 120; 812 ms per step without waiting,
//   median of the others 401 ms; server-0 has waited 0.8 s for its push of h.2"
// A worker's own time is its step time without waits for weights. A worker is late if that exceeds
// kLateRatio times the others' median; if it is at least two steps behind, and by half a second
// more than its heartbeat is old; or if a server has waited kLateSeconds for it alone or for a
// minority that includes it.
std::vector<std::string> LateTexts(const StatusReply& status);
inline constexpr double kLateRatio = 1.3;
inline constexpr double kLateSeconds = 0.3;
inline constexpr double kSilentSeconds = 2;

// Mean staleness of a server's updates (NodeCounters.staleness); 0 without updates.
double MeanStaleness(const NodeCounters& counters);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_WATCH_TEXT_H_
