#ifndef TUG_COLLECTIVE_SCHEDULE_PROOF_H_
#define TUG_COLLECTIVE_SCHEDULE_PROOF_H_

// Decides whether the schedules of all ranks keep the contract of schedule.h, in every order that
// their events may come, for an executor that reads peers' buffers in place.
//
// A message is three events: its sender posts it, its receiver reads it, its receiver writes it.
// One comes after another where the contract says so, and nowhere else:
//  - a post after the earlier posts to that peer, and the writes into its parts of the steps
//    before (without parts: all writes of the steps before);
//  - a read after the post, and the earlier reads of that peer's messages;
//  - a write after the read, the earlier writes into its parts, its own rank's posts of these parts
//    up to its step, and what its write hazards name: the peers' reads of those sends. Without a
//    hazard read and write are one event: it is read only when it may be written.
// These are the edges of a graph, and all there is to prove is read off it:
//  1. Nobody waits for ever: it has no cycle.
//  2. Nothing is written that a peer has yet to read: the read of every send is an ancestor of the
//     next write into its parts.
//  3. With 2, what a message carries is the same in every order. So one run in any topological
//     order, with terms (sum_terms.h) in place of numbers, shows what is summed, along which tree.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/schedule.h"
#include "collective/sum_terms.h"
#include "collective/write_hazards.h"

namespace tug {

struct ScheduleProof {
  std::string error;                        // empty: the contract is kept
  std::vector<std::vector<uint32_t>> held;  // without error: term of each rank, part, in the end
};

// Finds every breach: transfers that do not match, receives of a step that overlap, a deadlock, a
// part written before a peer has read it, parts that are sent or summed before there is anything in
// them, a contribution summed twice or lost. Says the first.
//
// `begins_with`: whether a rank has something in a part at first. `hazards`: those that receives
// wait for, by rank. Pure. REQUIRES: at most 64 ranks; hazards name transfers that there are.
ScheduleProof ProveSchedules(std::span<const CollectiveSchedule> family,
                             std::span<const std::vector<WriteHazard>> hazards,
                             const std::function<bool(uint32_t rank, uint32_t part)>& begins_with,
                             SumTerms& terms);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULE_PROOF_H_
