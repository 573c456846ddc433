// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NETWORK_WRITE_HAZARDS_H_
#define TUG_COLLECTIVE_NETWORK_WRITE_HAZARDS_H_

// Write-after-read hazards: receives that could write parts that a peer has not yet read in place
// (schedule.h). The proof of schedules heeds them (schedule_proof.h).
//
// A receive of rank a into a part overwrites what a's sends of that part carried since it was last
// written, up to those of the same step. It need not wait for such a send, to b, if what arrives
// depends on b having received it. This is tracked for each part by itself, so it holds for each
// element, however an executor cuts parts into chunks:
//   1. Every rank tracks, for each rank, the step up to which its receives into the part are known
//      to be done; initially none.
//   2. A send in step k carries what its rank knew before step k.
//   3. A receive in step k is safe from a send of step j to b if what arrives shows that b's
//      receives are done up to step j or later. Otherwise it is a hazard.
//   4. The receiver then knows all that the sender knew, and that its own receives are done up to
//      step k.
// Knowledge gained by waiting for a hazard is ignored, so the result may hold more hazards than
// necessary. It does not for the schedules of collective/schedules (schedules_conformance_test.cc
// omits each hazard in turn).

#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedules/schedule.h"

namespace tug {

// Receive number `receive` of step `step` must not write before send number `send` of step
// `send_step` (<= step) has been released.
struct WriteHazard {
  uint32_t step = 0;
  uint32_t receive = 0;
  uint32_t send_step = 0;
  uint32_t send = 0;

  friend auto operator<=>(const WriteHazard&, const WriteHazard&) = default;
};

// Hazards of each rank, sorted. `family`: the schedules of all ranks. Pure. For each part it visits
// all transfers once and copies one number per rank for each transfer of the part: time grows as
// parts x (all transfers + world x transfers of the part). REQUIRES: the family keeps the contract
// of schedule.h.
std::vector<std::vector<WriteHazard>> WriteHazards(std::span<const CollectiveSchedule> family);

}  // namespace tug

#endif  // TUG_COLLECTIVE_NETWORK_WRITE_HAZARDS_H_
