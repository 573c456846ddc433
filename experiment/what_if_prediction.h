#ifndef TUG_EXPERIMENT_WHAT_IF_PREDICTION_H_
#define TUG_EXPERIMENT_WHAT_IF_PREDICTION_H_

// How much faster a job would be with each change (what_if.h), simulated from its own trace.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/traced_profile.h"
#include "nlohmann/json_fwd.hpp"

namespace tug {

struct WhatIfPrediction {
  std::string name;
  std::vector<std::string> sets;
  double link = 1;
  double step_seconds = 0;  // simulated
  double speed_up = 1;      // of the job as it is simulated
};

struct WhatIfReport {
  double measured_seconds = 0;   // a step of the trace
  double simulated_seconds = 0;  // the job as it ran
  double link_bytes_per_second = 0;
  double lane_bytes_per_second = 0;
  double slowdown = 1;
  std::vector<std::string> notes;
  std::vector<WhatIfPrediction> predictions;  // the fastest first

  // By how much the simulated job is off the measured one, of 1: predictions are as wrong.
  double base_error() const { return simulated_seconds / measured_seconds - 1; }
};

// Simulates the job as it ran, then with each change, for about a quarter of a minute at most: a
// change beyond that has a note. Errors: those of the simulator, and UNIMPLEMENTED for a job that
// would take longer by itself.
absl::StatusOr<WhatIfReport> PredictWhatIfs(const TracedProfile& traced, double measured_seconds);

// RUN/what_if.json.
inline constexpr char kWhatIfFile[] = "what_if.json";
nlohmann::ordered_json WhatIfJson(const WhatIfReport& report);
// Errors: NOT_FOUND, INVALID_ARGUMENT.
absl::StatusOr<WhatIfReport> ReadWhatIfs(const std::string& path);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WHAT_IF_PREDICTION_H_
