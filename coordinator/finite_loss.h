#ifndef TUG_COORDINATOR_FINITE_LOSS_H_
#define TUG_COORDINATOR_FINITE_LOSS_H_

#include <cstdint>
#include <string>

#include "coordinator/step_metrics.h"

namespace tug {

class TrainConfig;

// Watches for a training whose loss stays infinite or not a number: it learns nothing any more,
// since updates whose gradient is not finite are skipped, or made of weights that are lost already.
// Not thread-safe.
class FiniteLoss {
 public:
  explicit FiniteLoss(const TrainConfig& config);

  // Steps in order. One without a target says nothing (every report of it was lost or skipped).
  void Add(const StepMetrics& metrics);

  // train.max_nonfinite_steps in a row; no later step changes that.
  bool exceeded() const { return most_ > 0 && in_a_row_ >= most_; }
  // There was a step, and the loss of none was finite. False where it is not to be watched.
  bool never_finite() const { return most_ > 0 && in_a_row_ > 0 && !any_finite_; }
  // Which step was the first, and what to try. REQUIRES: either of the above.
  std::string Error() const;

 private:
  const uint64_t most_;  // 0: not watched
  uint64_t first_ = 0;   // number of the first step in the row
  uint64_t in_a_row_ = 0;
  bool any_finite_ = false;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_FINITE_LOSS_H_
