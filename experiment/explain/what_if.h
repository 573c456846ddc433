// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_EXPLAIN_WHAT_IF_H_
#define TUG_EXPERIMENT_EXPLAIN_WHAT_IF_H_

// Possible changes to a job that is too slow: one row each, to be simulated (what_if_prediction.h).

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "simulate/schedule/scheduling.h"

namespace tug {

// A change to a job.
struct WhatIf {
  std::string name;               // "2 more servers"
  std::vector<std::string> sets;  // "cluster.servers=4", in order; empty for a faster link
  double link = 1;                // factor on the rate of every host's link
};

// Changes that apply to a job. `slowdown`: of its slowest virtual worker. Pure.
std::vector<WhatIf> WhatIfsFor(const JobConfig& job, double slowdown);

// The job with a change applied and defaults filled in. Pure. Errors: those of ApplyOverride.
absl::StatusOr<JobConfig> Changed(const JobConfig& job, const WhatIf& change);

// The hosts with a change applied: rate of the links, and the cost of encoding and decoding with
// codecs that the change adds, as measured ("Speed of the codecs" in
// docs/experiments/compression.md). Pure.
SimulatedHosts HostsWith(const SimulatedHosts& hosts, const JobConfig& before,
                         const JobConfig& after, const WhatIf& change);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPLAIN_WHAT_IF_H_
