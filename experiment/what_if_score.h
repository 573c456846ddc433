#ifndef TUG_EXPERIMENT_WHAT_IF_SCORE_H_
#define TUG_EXPERIMENT_WHAT_IF_SCORE_H_

// What became of a prediction: the job was run with the change.

#include <string>

#include "absl/status/statusor.h"
#include "experiment/run_figures.h"
#include "experiment/what_if_prediction.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/job.pb.h"

namespace tug {

struct WhatIfScore {
  std::string job;  // its name
  std::string name;
  double predicted = 1;  // speed-ups
  double actual = 1;
  double base_error = 0;  // of the simulated job, of 1

  double error() const { return predicted / actual - 1; }  // of 1
};

// Which change makes the configuration of one run that of the other. Not compared: name, seed,
// steps, checkpoints, trace, and what hangs on the machine. `named`: of a change that is in no
// configuration, the link, the name; else empty. Pure. Errors: INVALID_ARGUMENT, naming what
// differs, or the changes there are.
absl::StatusOr<WhatIfPrediction> ChangeBetween(const JobConfig& run, const JobConfig& other,
                                               const WhatIfReport& report,
                                               const std::string& named);

// Speeds are rates of steps (StepRate) after the first few. Pure. Errors: INVALID_ARGUMENT for runs
// that have too few.
absl::StatusOr<WhatIfScore> Score(const std::string& job, const WhatIfPrediction& change,
                                  const WhatIfReport& report, const RunFigures& run,
                                  const RunFigures& other);

// A line of what_if_scores.jsonl.
nlohmann::ordered_json ScoreJson(const WhatIfScore& score);
// "2 more servers: predicted 1.31x, was 1.24x: 5.6% too much (the simulated job was off by 2.1%)".
std::string ScoreText(const WhatIfScore& score);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WHAT_IF_SCORE_H_
