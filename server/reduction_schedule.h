#ifndef TUG_SERVER_REDUCTION_SCHEDULE_H_
#define TUG_SERVER_REDUCTION_SCHEDULE_H_

#include <cstdint>

#include "collective/cost.h"
#include "collective/element_type.h"
#include "collective/schedule.h"
#include "proto/job.pb.h"

namespace tug {

// The link that algorithms are compared on with `collective.algorithm: AUTO`: 10 Gbit/s, 20
// microseconds a message, sums at 10 GB/s. Nominal, not measured: all ranks must choose the same,
// and the bits of a result depend on the choice.
inline constexpr LinkCost kNominalLink = {.alpha = 20e-6, .beta = 0.8e-9, .gamma = 0.1e-9};

// What a rank does in the all-reduce of a buffer of so many bytes: the algorithm of the job, with
// AUTO the one that costs least on kNominalLink (collective/algorithms.h). A pure function, of
// which all ranks of a world give the same algorithm. REQUIRES: a configuration with its defaults.
CollectiveSchedule ReductionSchedule(const CollectiveConfig& collective, uint32_t rank,
                                     uint32_t world, uint64_t bytes);

// REQUIRES: the same.
ElementType ReductionType(const CollectiveConfig& collective);

}  // namespace tug

#endif  // TUG_SERVER_REDUCTION_SCHEDULE_H_
