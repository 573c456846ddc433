// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_FAULT_EVENT_H_
#define TUG_LAB_SIMULATE_FAULT_EVENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "proto/wire.h"

namespace tug {

// Kinds of faults of a simulated cluster.
enum class FaultKind : uint8_t {
  kKillWorker,    // its replacement takes `lasts` to start
  kKillServer,    // its replacement takes `lasts` to start
  kFreezeWorker,  // the process is frozen for `lasts` (SIGSTOP, SIGCONT)
  kFreezeServer,
  kCutWorker,  // its link is cut for `lasts`
  kCutServer,
  kJoinWorker,  // one more, in addition to the initial ones
  kJoinServer,
  kDrainWorker,  // asked to leave; another one joins after `lasts`
  kDrainServer,
  kKillCoordinator,    // its replacement takes `lasts` to start and recover the job
  kFreezeCoordinator,  // it is frozen for `lasts`
  kStop,               // the user interrupts the job
  kLoseKind,           // a link loses all messages of one kind for `lasts`
  kLeaveWorker,        // told to end (SIGTERM), and asks the job to let it leave
  kLeaveServer,
  kKillJob,  // all processes at once, without any shutdown; the run is resumed
};
inline constexpr size_t kFaultKinds = 17;
inline constexpr const char* kFaultNames[kFaultKinds] = {
    "worker killed",   "server killed",        "worker frozen",       "server frozen",
    "worker cut off",  "server cut off",       "worker joins",        "server joins",
    "worker drained",  "server drained",       "coordinator killed",  "coordinator frozen",
    "job stopped",     "kind of message lost", "worker gets SIGTERM", "server gets SIGTERM",
    "whole job killed"};
inline const char* FaultName(FaultKind kind) { return kFaultNames[static_cast<size_t>(kind)]; }

// One fault of a run, as far as it is known beforehand: the node that it hits depends on which
// nodes are alive then.
struct FaultEvent {
  FaultKind kind = FaultKind::kKillWorker;
  absl::Duration at;  // after the beginning of the job
  uint32_t pick = 0;  // victim: index pick % N of the N living nodes of its kind
  absl::Duration lasts = absl::InfiniteDuration();  // killed: its host is lost with it
  // Killed: how many of its replacements are killed too, each `up` after it started.
  uint32_t times_more = 0;
  absl::Duration up = {};
  // Killed: whether the coordinator sees its connection close (the process ends), or it falls
  // silent (the host does).
  bool seen_at_once = true;
  // Cut off: directions of the lost messages, and its peers.
  bool cuts_out = true;
  bool cuts_in = true;
  MessageKind loses = MessageKind::kCommitted;  // kLoseKind: between a server and one node
  enum class From : uint8_t { kEverybody, kCoordinator, kOneNode } cut_from = From::kEverybody;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_FAULT_EVENT_H_
