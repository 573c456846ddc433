// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/early_stop.h"

#include <cmath>
#include <utility>

namespace tug {

bool EarlyStop::Add(const EvalMetrics& eval) {
  evals_.push_back(eval);
  if (std::isfinite(eval.loss) && (!best_.has_value() || eval.loss < best_->loss)) best_ = eval;
  if (eval.final) return false;
  const bool better = std::isfinite(eval.loss) &&
                      (!reference_.has_value() || eval.loss < *reference_ - min_improvement_);
  if (better) {
    reference_ = eval.loss;
    without_improvement_ = 0;
    return false;
  }
  ++without_improvement_;
  return patience_ > 0 && without_improvement_ >= patience_;
}

void EarlyStop::GoBackTo(uint64_t version) {
  best_.reset();
  reference_.reset();
  without_improvement_ = 0;
  for (const EvalMetrics& eval : std::exchange(evals_, {})) {
    if (eval.version <= version) Add(eval);
  }
}

}  // namespace tug
