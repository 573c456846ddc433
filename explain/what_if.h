// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_WHAT_IF_H_
#define TUG_EXPLAIN_WHAT_IF_H_

// Possible changes to a job that is too slow: one row each, to be simulated (what_if_prediction.h).

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "explain/traced_profile.h"

namespace tug {

// Effect of a change beyond its settings.
struct WhatIfEffect {
  double link = 1;         // factor on the rate of every host's link
  double compute = 1;      // factor on the speed of every pass
  bool own_hosts = false;  // each process on a host of its own, with a link
};

// A change to a job.
struct WhatIf {
  std::string name;               // "2 more servers"
  std::vector<std::string> sets;  // "cluster.servers=4", in order
  WhatIfEffect effect;
};

// Changes that apply to a job. Pure.
std::vector<WhatIf> WhatIfsFor(const TracedProfile& traced);

// The job, a replay, with a change applied and defaults filled in. Pure. Errors: those of
// ApplyOverride.
absl::StatusOr<JobConfig> Changed(const JobConfig& job, const WhatIf& change);

// The hosts of the job with a change applied, which turned it into `after`: rate of the links, and
// the cost of encoding and decoding with codecs that the change adds, as measured ("Speed of the
// codecs" in docs/experiments/compression.md). Pure.
SimulatedHosts HostsWith(const TracedProfile& traced, const JobConfig& after, const WhatIf& change);

}  // namespace tug

#endif  // TUG_EXPLAIN_WHAT_IF_H_
