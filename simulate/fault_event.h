#ifndef TUG_SIMULATE_FAULT_EVENT_H_
#define TUG_SIMULATE_FAULT_EVENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "proto/wire.h"

namespace tug {

// What can happen to a simulated cluster.
enum class FaultKind : uint8_t {
  kKillWorker,    // its replacement takes `lasts` to start
  kKillServer,    // the same
  kFreezeWorker,  // the process stands still for `lasts` (SIGSTOP, SIGCONT)
  kFreezeServer,
  kCutWorker,  // its link for `lasts`
  kCutServer,
  kJoinWorker,  // one more, beside those that the job began with
  kJoinServer,
  kDrainWorker,  // is asked to leave; another one joins after `lasts`
  kDrainServer,
  kKillCoordinator,    // its replacement takes `lasts` to start and recover the job
  kFreezeCoordinator,  // it stands still for `lasts`
  kStop,               // the user interrupts the job
  kLoseKind,           // a link loses all messages of one kind for `lasts`
  kLeaveWorker,        // is told to end (SIGTERM), and asks the job to let it go
  kLeaveServer,
  kKillJob,  // all processes, at once: nobody ends anything, and the run is resumed
};
inline constexpr size_t kFaultKinds = 17;
inline constexpr const char* kFaultNames[kFaultKinds] = {
    "worker killed",   "server killed",        "worker frozen",      "server frozen",
    "worker cut off",  "server cut off",       "worker joins",       "server joins",
    "worker drained",  "server drained",       "coordinator killed", "coordinator frozen",
    "job stopped",     "kind of message lost", "worker told to end", "server told to end",
    "whole job killed"};
inline const char* FaultName(FaultKind kind) { return kFaultNames[static_cast<size_t>(kind)]; }

// One fault of a run, as far as it is known before the run: whom it meets depends on who lives
// then.
struct FaultEvent {
  FaultKind kind = FaultKind::kKillWorker;
  absl::Duration at;  // after the job has begun
  uint32_t pick = 0;  // of those of its kind that live: the one at index pick % their number
  absl::Duration lasts = absl::InfiniteDuration();  // killed: its host is lost with it
  // Killed: how many of its replacements are killed too, this long after they were up.
  uint32_t times_more = 0;
  absl::Duration up = {};
  // Killed: whether its connection to the coordinator is seen to close (a process that ends), or it
  // falls silent (a host that does).
  bool seen_at_once = true;
  // Cut off: messages of which directions, and between it and whom.
  bool cuts_out = true;
  bool cuts_in = true;
  MessageKind loses = MessageKind::kCommitted;  // kLoseKind: between a server and one node
  enum class From : uint8_t { kEverybody, kCoordinator, kOneNode } cut_from = From::kEverybody;
};

}  // namespace tug

#endif  // TUG_SIMULATE_FAULT_EVENT_H_
