#ifndef TUG_COORDINATOR_WATCH_TEXT_H_
#define TUG_COORDINATOR_WATCH_TEXT_H_

#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// What nodes are at, in words, for `tug status --watch` and the live page. Pure, thread-safe.

// "worker 3"
std::string NodeName(const NodeStatus& node);

// "waiting for nodes", "running", "done", "failed"
std::string PhaseText(Phase phase);

// "waiting for 1 server to join, for 12 s: the job then goes back to ..."; empty: it does not wait.
std::string WaitText(const StatusReply& status);

// "computing h.3"; "waiting 0.8 s for h.3: sum, missing virtual worker 2 (worker 3)"; of a server
// "waiting 0.8 s for pushes of h.3: virtual worker 2 (worker 3)". Empty: it has not said.
std::string ActivityText(const NodeStatus& node, const StatusReply& status);

// Who holds the others up, a sentence each: nodes that are silent, then workers that are late, both
// in the order of the status; empty: nobody.
//   "server 2 is silent: not heard of for 2.3 s"
//   "worker 3 is late: step 118, others 120; 812 ms of its own a step, others 401 ms; server 1
//   waits 0.8 s for its push of h.2"
// A worker's own time is that of a step in which it did not wait for weights. It counts as late
// when that is kLateRatio of the others' median, when it is two steps behind and half a second of
// them more than its heartbeat is old, or when a server has waited for it alone, or for it and a
// minority, for kLateSeconds.
std::vector<std::string> LateTexts(const StatusReply& status);
inline constexpr double kLateRatio = 1.3;
inline constexpr double kLateSeconds = 0.3;
inline constexpr double kSilentSeconds = 2;

// The mean staleness of a server's updates (NodeCounters.staleness); 0 without updates.
double MeanStaleness(const NodeCounters& counters);

}  // namespace tug

#endif  // TUG_COORDINATOR_WATCH_TEXT_H_
