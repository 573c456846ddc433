// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_EXPLAIN_WHAT_IF_SCORE_H_
#define TUG_EXPERIMENT_EXPLAIN_WHAT_IF_SCORE_H_

// A prediction compared with a run of the changed job.

#include <string>

#include "absl/status/statusor.h"
#include "experiment/explain/what_if_prediction.h"
#include "experiment/measures/run_figures.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/job.pb.h"

namespace tug {

struct WhatIfScore {
  std::string job;  // its name
  std::string name;
  double predicted = 1;  // speed-up; so is `actual`
  double actual = 1;
  double base_error = 0;  // relative error of the simulated unchanged job

  double error() const { return predicted / actual - 1; }  // relative
};

// Finds the change that turns the configuration of `run` into that of `other`. Ignores name, seed,
// steps, checkpoints, trace, and machine-dependent fields. `named`: name of a change that no
// configuration shows, such as the link; else empty. Pure. Errors: INVALID_ARGUMENT, naming the
// difference or the known changes.
absl::StatusOr<WhatIfPrediction> ChangeBetween(const JobConfig& run, const JobConfig& other,
                                               const WhatIfReport& report,
                                               const std::string& named);

// Compares the step rates (StepRate) of two runs after their first few steps. Pure. Errors:
// INVALID_ARGUMENT if a run has too few steps.
absl::StatusOr<WhatIfScore> Score(const std::string& job, const WhatIfPrediction& change,
                                  const WhatIfReport& report, const RunFigures& run,
                                  const RunFigures& other);

// A line of what_if_scores.jsonl.
nlohmann::ordered_json ScoreJson(const WhatIfScore& score);
// "2 more servers: predicted 1.31x, was 1.24x: 5.6% too much (the simulated job was off by +2.1%)".
std::string ScoreText(const WhatIfScore& score);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXPLAIN_WHAT_IF_SCORE_H_
