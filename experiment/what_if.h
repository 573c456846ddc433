#ifndef TUG_EXPERIMENT_WHAT_IF_H_
#define TUG_EXPERIMENT_WHAT_IF_H_

// What could be changed in a job that is too slow: one row each, to be simulated
// (what_if_prediction.h) and, where it was tried, scored (what_if_score.h).

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "simulate/scheduling.h"

namespace tug {

// A change of one job.
struct WhatIf {
  std::string name;               // "2 more servers"
  std::vector<std::string> sets;  // "cluster.servers=4", in order; of twice the link none
  double link = 1;                // the rate of every host's link, so many times as much
};

// The rows of the table that say something about a job. `slowdown`: of its slowest virtual worker.
// Pure.
std::vector<WhatIf> WhatIfsFor(const JobConfig& job, double slowdown);

// The job with a change, complete. Pure. Errors: those of ApplyOverride.
absl::StatusOr<JobConfig> Changed(const JobConfig& job, const WhatIf& change);

// The hosts with a change of a job: its link, and what encoding and decoding take of the codecs
// that it brings. Those were measured: "Speed of the codecs" in docs/experiments/compression.md.
// Pure.
SimulatedHosts HostsWith(const SimulatedHosts& hosts, const JobConfig& before,
                         const JobConfig& after, const WhatIf& change);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WHAT_IF_H_
