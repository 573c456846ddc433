// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_FINITE_LOSS_H_
#define TUG_COORDINATOR_PROGRESS_FINITE_LOSS_H_

#include <cstdint>
#include <string>

#include "coordinator/progress/step_metrics.h"

namespace tug {

class TrainConfig;

// Detects a training whose loss stays infinite or NaN: it no longer learns, since updates with a
// gradient that is not finite are skipped, or its weights are not finite already. Not thread-safe.
class FiniteLoss {
 public:
  explicit FiniteLoss(const TrainConfig& config);

  // Adds a step, in order. A step without targets is ignored (all its reports were lost or
  // skipped).
  void Add(const StepMetrics& metrics);

  // Whether the loss of train.max_nonfinite_steps in a row was not finite; later steps do not
  // change that.
  bool exceeded() const { return most_ > 0 && in_a_row_ >= most_; }
  // There was a step, and no step had a finite loss. Always false if not watched.
  bool never_finite() const { return most_ > 0 && in_a_row_ > 0 && !any_finite_; }
  // The first such step, and what to try. REQUIRES: exceeded() or never_finite().
  std::string Error() const;

 private:
  const uint64_t most_;  // 0: not watched
  uint64_t first_ = 0;   // number of the first of these steps
  uint64_t in_a_row_ = 0;
  bool any_finite_ = false;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_FINITE_LOSS_H_
