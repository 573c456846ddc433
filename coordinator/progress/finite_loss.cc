// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/finite_loss.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/job.pb.h"

namespace tug {

FiniteLoss::FiniteLoss(const TrainConfig& config) : most_(config.max_nonfinite_steps()) {}

void FiniteLoss::Add(const StepMetrics& metrics) {
  if (metrics.targets == 0 || exceeded()) return;
  if (std::isfinite(metrics.loss)) {
    any_finite_ = true;
    in_a_row_ = 0;
    return;
  }
  if (in_a_row_ == 0) first_ = metrics.step;
  ++in_a_row_;
}

std::string FiniteLoss::Error() const {
  return absl::StrCat(
      "the loss is not finite: step ", first_, " was the first of ", in_a_row_,
      in_a_row_ == 1 ? " step" : " steps", " in a row (train.max_nonfinite_steps ", most_, "); ",
      any_finite_
          ? "resume from a checkpoint before that step with a lower optimizer.learning_rate or "
            "optimizer.clip_norm, or with more optimizer.warmup_steps"
          : "no earlier step had a finite loss: check the initial weights (train.init_from), or "
            "lower optimizer.learning_rate");
}

}  // namespace tug
