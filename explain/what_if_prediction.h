// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_WHAT_IF_PREDICTION_H_
#define TUG_EXPLAIN_WHAT_IF_PREDICTION_H_

// Predicted speed-up of a job by each change (what_if.h), simulated from its own trace.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "explain/traced_profile.h"
#include "explain/what_if.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

struct WhatIfPrediction {
  std::string name;
  std::vector<std::string> sets;
  WhatIfEffect effect;
  double step_seconds = 0;  // simulated
  double speed_up = 1;      // over the simulated unchanged job
};

struct WhatIfReport {
  double measured_seconds = 0;   // per step, in the trace
  double simulated_seconds = 0;  // per step, of the unchanged job
  double link_bytes_per_second = 0;
  bool in_memory = false;  // the link is the memory of the one host (TracedProfile)
  double lane_bytes_per_second = 0;
  double slowdown = 1;
  std::vector<std::string> notes;
  std::vector<WhatIfPrediction> predictions;  // the fastest first

  // Relative error of the simulated unchanged job against the measured one; predictions may be off
  // by as much.
  double base_error() const { return simulated_seconds / measured_seconds - 1; }
};

// Simulates the unchanged job, then each change, up to kMaxWhatIfChunks in total: a change beyond
// that gets a note. Errors: those of the simulator.
absl::StatusOr<WhatIfReport> PredictWhatIfs(const TracedProfile& traced, double measured_seconds);

nlohmann::ordered_json WhatIfJson(const WhatIfReport& report);

}  // namespace tug

#endif  // TUG_EXPLAIN_WHAT_IF_PREDICTION_H_
