// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_EARLY_STOP_H_
#define TUG_COORDINATOR_PROGRESS_EARLY_STOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/progress/progress.h"
#include "proto/job.pb.h"

namespace tug {

// Tracks a job's evaluations: the best one, and whether training should end because train.patience
// in a row did not improve (train.min_improvement; Prechelt 1998, "Early stopping - but when?"). An
// evaluation improves if its loss is lower than the reference by more than min_improvement; one
// that is not finite never does. Not thread-safe.
class EarlyStop {
 public:
  explicit EarlyStop(const TrainConfig& config)
      : patience_(config.patience()), min_improvement_(config.min_improvement()) {}

  // Adds an evaluation, in order of version, starting with those of the resumed run. True: end
  // training. The final evaluation of a job reads other samples and only counts for best().
  bool Add(const EvalMetrics& eval);
  // Forgets evaluations of later versions.
  void GoBackTo(uint64_t version);

  // Lowest loss so far; the earliest version that has it.
  const std::optional<EvalMetrics>& best() const { return best_; }
  // Consecutive evaluations without an improvement.
  uint32_t without_improvement() const { return without_improvement_; }

 private:
  const uint32_t patience_;
  const double min_improvement_;
  std::vector<EvalMetrics> evals_;
  std::optional<EvalMetrics> best_;
  std::optional<double> reference_;  // loss to improve on
  uint32_t without_improvement_ = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_EARLY_STOP_H_
