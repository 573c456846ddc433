#ifndef TUG_EXPERIMENT_TRACED_PROFILE_H_
#define TUG_EXPERIMENT_TRACED_PROFILE_H_

// A job as the simulator takes it (simulate/scheduling.h), from what its trace says: how long each
// block computes, how many parameters it has, who is slow, what links and lanes carry.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/job.pb.h"
#include "simulate/scheduling.h"

namespace tug {

struct TracedProfile {
  JobConfig job;         // as it ran, as a replay of what was measured
  SimulatedHosts hosts;  // what the trace says of them; latency and messages as TestbedHosts
  // The slowest virtual worker computes so many times as long as the others; 1: as the others.
  double slowdown = 1;
  std::vector<std::string> notes;  // what was taken for granted, a line each
};

// `config`: of the run, resolved. Of the times of a block the median over steps and virtual
// workers, but not of one that takes 1.15 times as long as the others in median: it is the job's
// straggler then.
//
// The link's rate is that of the fastest end of a link, one way: bytes over time, of times in which
// something was on its way without pause, 256 KiB at least; the 90th percentile, by bytes. A link
// that something else holds up is taken for slower than it is. `link_bytes_per_second`: if not 0,
// the rate of a host's link, and nothing is estimated.
//
// Errors: UNIMPLEMENTED, one line, naming what the simulator does not model of the job;
// INVALID_ARGUMENT for a trace in which computing or pulls of a block are missing.
absl::StatusOr<TracedProfile> ProfileOfTrace(const nlohmann::json& trace, const JobConfig& config,
                                             double link_bytes_per_second);

}  // namespace tug

#endif  // TUG_EXPERIMENT_TRACED_PROFILE_H_
