#ifndef TUG_COLLECTIVE_SYMBOLIC_RUN_H_
#define TUG_COLLECTIVE_SYMBOLIC_RUN_H_

// Runs the schedules of all ranks with terms in place of numbers, as an executor may that reads
// peers' buffers in place, and finds every breach of schedule.h: transfers that do not match,
// receives of a step that overlap, parts that are sent or summed before there is anything in them,
// a contribution summed twice or lost, a part written before a peer has read it, a deadlock.
//
// Each event waits for what the contract makes it wait for, and for nothing else:
//  - a send is posted after the earlier sends to that peer, and the writes into its parts of the
//    steps before (without parts: of all receives of the steps before);
//  - a receive without a write hazard is read and written at once: after the matching send is
//    posted, the earlier receives of that peer are read, the earlier receives into its parts are
//    written, and its own rank's sends of these parts up to its step are posted;
//  - one with a write hazard is first read, to the side, and written when, besides, the sends of
//    the hazard are read.
// Which event comes next is drawn at random; for half of the seeds one rank is always served
// before another, so that some are as late as can be.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/schedule.h"
#include "collective/sum_terms.h"
#include "collective/write_hazards.h"

namespace tug {

struct SymbolicOutcome {
  std::string error;                        // empty: the contract was kept
  std::vector<std::vector<uint32_t>> held;  // term of each rank, part, in the end
};

// `begins_with`: whether a rank has something in a part at first. `hazards`: those that receives
// wait for, by rank. REQUIRES: at most 64 ranks.
SymbolicOutcome RunSymbolically(
    std::span<const Schedule> family, std::span<const std::vector<WriteHazard>> hazards,
    const std::function<bool(uint32_t rank, uint32_t part)>& begins_with, uint32_t seed,
    SumTerms& terms);

// WriteHazards of every rank.
std::vector<std::vector<WriteHazard>> AllWriteHazards(std::span<const Schedule> family);

// What of the contract can be seen without running: empty, or what is wrong.
std::string Mismatch(std::span<const Schedule> family);

}  // namespace tug

#endif  // TUG_COLLECTIVE_SYMBOLIC_RUN_H_
