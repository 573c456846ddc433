// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_REDUCTION_SCHEDULE_H_
#define TUG_SERVER_SUMS_REDUCTION_SCHEDULE_H_

#include <cstdint>

#include "collective/element_type.h"
#include "collective/schedules/cost.h"
#include "collective/schedules/schedule.h"
#include "proto/job.pb.h"

namespace tug {

// Link on which algorithms are compared for `collective.algorithm: AUTO`: 10 Gbit/s, 20
// microseconds per message, sums at 10 GB/s. Nominal, not measured: all ranks must make the same
// choice, and the bits of a result depend on it.
inline constexpr LinkCost kNominalLink = {.alpha = 20e-6, .beta = 0.8e-9, .gamma = 0.1e-9};

struct ReductionPlan {
  const char* algorithm = "";  // its name in collective/algorithms.h
  CollectiveSchedule schedule;
};

// A rank's part in the all-reduce of a buffer of `bytes`: by the job's algorithm, or with AUTO by
// the cheapest on kNominalLink (collective/algorithms.h). Pure: all ranks of a world get the same
// algorithm. REQUIRES: a configuration with defaults filled in.
ReductionPlan PlanReduction(const CollectiveConfig& collective, uint32_t rank, uint32_t world,
                            uint64_t bytes);

// REQUIRES: a configuration with defaults filled in.
ElementType ReductionType(const CollectiveConfig& collective);

}  // namespace tug

#endif  // TUG_SERVER_SUMS_REDUCTION_SCHEDULE_H_
