#ifndef TUG_COORDINATOR_EARLY_STOP_H_
#define TUG_COORDINATOR_EARLY_STOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/progress.h"
#include "proto/job.pb.h"

namespace tug {

// Watches the evaluations of a job: which was the best one, and whether so many in a row were no
// better than the best before them that training should end (train.patience, min_improvement;
// Prechelt 1998, "Early stopping - but when?"). An evaluation is better when its loss is lower by
// more than min_improvement; one that is not finite never is. Not thread-safe.
class EarlyStop {
 public:
  explicit EarlyStop(const TrainConfig& config)
      : patience_(config.patience()), min_improvement_(config.min_improvement()) {}

  // Evaluations in order of version, those of the run that is resumed too. True: time to end. The
  // last evaluation of a job reads other samples and counts for the best one only.
  bool Add(const EvalMetrics& eval);
  // As if there had been none of later versions.
  void GoBackTo(uint64_t version);

  // Lowest loss so far, of the earliest version that has it.
  const std::optional<EvalMetrics>& best() const { return best_; }
  // Evaluations in a row without an improvement.
  uint32_t without_improvement() const { return without_improvement_; }

 private:
  const uint32_t patience_;
  const double min_improvement_;
  std::vector<EvalMetrics> evals_;
  std::optional<EvalMetrics> best_;
  std::optional<double> reference_;  // loss that is to be improved on
  uint32_t without_improvement_ = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_EARLY_STOP_H_
