#ifndef TUG_COLLECTIVE_WRITE_HAZARDS_H_
#define TUG_COLLECTIVE_WRITE_HAZARDS_H_

// Write-after-read hazards: which receives could write parts that a peer has yet to read in place
// (schedule.h).
//
// A receive of rank a into a part overwrites what a's sends of that part carried since it was last
// written, up to those of the same step. It need not wait for one of them, to b, if what arrives
// depends on b having received it. That is found along the causes, for each part by itself (so it
// holds element by element, however an executor cuts parts into chunks):
//   1. Of every rank it is kept up to which step each rank's receives into the part are known to be
//      done: at first none.
//   2. What a rank sends in step k says what the rank knew before step k.
//   3. A receive in step k is safe from a send of step j to b, if what arrives says that b's
//      receives are done up to step j or beyond. Else it is a hazard.
//   4. Then the receiver knows all that the sender knew, and that its own are done up to step k.
// What waiting for a hazard would prove is left aside, so hazards may be more than need be; not so
// in the schedules of this folder (schedules_conformance_test.cc leaves out each in turn).

#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace tug {

// Receive number `receive` of step `step` must not write before send number `send` of step
// `send_step` (<= step) has been let go.
struct WriteHazard {
  uint32_t step = 0;
  uint32_t receive = 0;
  uint32_t send_step = 0;
  uint32_t send = 0;

  friend auto operator<=>(const WriteHazard&, const WriteHazard&) = default;
};

// Those of each rank, in order. `family`: the schedules of all ranks. Pure. For each part it goes
// through all transfers once, and for each of them that has the part copies a number for each rank:
// time grows as parts x (all transfers + world x those that have the part).
// REQUIRES: the family keeps the contract of schedule.h.
std::vector<std::vector<WriteHazard>> WriteHazards(std::span<const CollectiveSchedule> family);

}  // namespace tug

#endif  // TUG_COLLECTIVE_WRITE_HAZARDS_H_
