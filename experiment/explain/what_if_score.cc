// SPDX-License-Identifier: Apache-2.0
#include "experiment/explain/what_if_score.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "experiment/explain/what_if.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

constexpr uint64_t kWarmUpSteps = 4;

// Clears the fields that may differ between two compared runs.
JobConfig Comparable(JobConfig config) {
  config.clear_name();
  config.clear_seed();
  config.clear_checkpoint();
  config.clear_trace();
  config.mutable_train()->clear_steps();
  // Their defaults depend on the number of steps, but do not affect step times.
  config.mutable_optimizer()->clear_warmup_steps();
  config.mutable_optimizer()->clear_decay_steps();
  config.mutable_comm()->mutable_push_codec()->clear_warmup_steps();
  config.mutable_replay()->clear_resolved_profile();
  return config;
}

}  // namespace

absl::StatusOr<WhatIfPrediction> ChangeBetween(const JobConfig& run, const JobConfig& other,
                                               const WhatIfReport& report,
                                               const std::string& named) {
  const JobConfig tried = Comparable(other);
  std::vector<std::string> names;
  for (const WhatIfPrediction& prediction : report.predictions) {
    names.push_back(prediction.name);
    if (!named.empty() && prediction.name != named) continue;
    ASSIGN_OR_RETURN(const JobConfig changed,
                     Changed(run, {prediction.name, prediction.sets, prediction.link}));
    const bool same = FirstDifference(Comparable(changed), tried).empty();
    // A change that no configuration shows must be named: the link, a host that is slow by itself.
    const bool shows = !FirstDifference(Comparable(changed), Comparable(run)).empty();
    if (same && (shows || !named.empty())) return prediction;
  }
  const std::string difference = FirstDifference(Comparable(run), tried);
  if (difference.empty() && named.empty()) {
    return absl::InvalidArgumentError(
        "the two runs have the same configuration: name the change with --change \"twice the "
        "link\"");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no prediction matches the change of the other run",
                   difference.empty() ? "" : absl::StrCat(" (", difference, ")"),
                   "; predicted changes: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<WhatIfScore> Score(const std::string& job, const WhatIfPrediction& change,
                                  const WhatIfReport& report, const RunFigures& run,
                                  const RunFigures& other) {
  const double before = StepRate(run, kWarmUpSteps);
  const double after = StepRate(other, kWarmUpSteps);
  if (before <= 0 || after <= 0) {
    return absl::InvalidArgumentError("the runs have too few steps to measure their speed");
  }
  return WhatIfScore{.job = job,
                     .name = change.name,
                     .predicted = change.speed_up,
                     .actual = after / before,
                     .base_error = report.base_error()};
}

nlohmann::ordered_json ScoreJson(const WhatIfScore& score) {
  return {{"job", score.job},       {"change", score.name},   {"predicted", score.predicted},
          {"actual", score.actual}, {"error", score.error()}, {"base_error", score.base_error}};
}

std::string ScoreText(const WhatIfScore& score) {
  return absl::StrFormat(
      "%s: predicted %.2fx, was %.2fx: %.1f%% too %s (the simulated job was off by %+.1f%%)",
      score.name, score.predicted, score.actual, 100 * std::abs(score.error()),
      score.error() > 0 ? "much" : "little", 100 * score.base_error);
}

}  // namespace tug
