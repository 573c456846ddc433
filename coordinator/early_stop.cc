#include "coordinator/early_stop.h"

#include <cmath>

namespace tug {

bool EarlyStop::Add(const EvalMetrics& eval) {
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

}  // namespace tug
