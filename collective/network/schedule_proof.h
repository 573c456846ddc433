// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NETWORK_SCHEDULE_PROOF_H_
#define TUG_COLLECTIVE_NETWORK_SCHEDULE_PROOF_H_

// Decides whether the schedules of all ranks keep the contract of schedule.h, in every order in
// which their events may happen, for an executor that reads peers' buffers in place.
//
// A message is three events: its sender posts it, its receiver reads it, its receiver writes it.
// One event follows another only where the contract says so:
//  - a post follows the earlier posts to that peer, and the writes into its parts of earlier steps;
//  - a read follows the post, and the earlier reads of that peer's messages;
//  - a write follows the read, the earlier writes into its parts, its own rank's posts of these
//    parts up to its step, and its write hazards: the peers' reads of those sends. Without a
//    hazard, read and write are one event: the message is read only when it may be written.
// These are the edges of a graph, from which three facts are proved:
//  1. No deadlock: the graph has no cycle.
//  2. Nothing is overwritten before a peer has read it: the read of every send is an ancestor of
//     the next write into its parts.
//  3. Given 2, a message's contents are the same in every order. So one run in any topological
//     order, with terms (sum_terms.h) instead of numbers, shows what is summed, and along which
//     tree.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/network/write_hazards.h"
#include "collective/schedules/schedule.h"
#include "collective/schedules/sum_terms.h"

namespace tug {

struct ScheduleProof {
  std::string error;                        // empty: the contract is kept
  std::vector<std::vector<uint32_t>> held;  // if there is no error: final term of each rank, part
};

// Finds every breach: transfers that do not match, overlapping receives in a step, a deadlock, a
// part written before a peer has read it, parts sent or summed while empty, a contribution summed
// twice or lost. Reports the first. `begins_with`: whether a rank starts with a value in a part.
// `hazards`: write hazards that receives wait for, by rank. Pure. REQUIRES: at most 64 ranks;
// hazards name existing transfers.
ScheduleProof ProveSchedules(std::span<const CollectiveSchedule> family,
                             std::span<const std::vector<WriteHazard>> hazards,
                             const std::function<bool(uint32_t rank, uint32_t part)>& begins_with,
                             SumTerms& terms);

}  // namespace tug

#endif  // TUG_COLLECTIVE_NETWORK_SCHEDULE_PROOF_H_
