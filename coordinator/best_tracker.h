#ifndef TUG_COORDINATOR_BEST_TRACKER_H_
#define TUG_COORDINATOR_BEST_TRACKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/best_checkpoint.h"
#include "coordinator/progress.h"
#include "proto/job.pb.h"

namespace tug {

// Finds the checkpoint with the lowest validation loss (checkpoint.keep_best): of the versions that
// are both evaluated and committed, which happens in either order. Evaluation and checkpoint of a
// version are of the same weights, those after `version` updates. Not thread-safe.
class BestTracker {
 public:
  // Evaluations and checkpoints that wait for the other; older ones are forgotten.
  static constexpr size_t kMaxOpen = 1000;

  // `best`: of the run that is resumed.
  BestTracker(const JobConfig& config, std::optional<BestCheckpoint> best);

  // Versions come again: only the best one counts still.
  void BeginTimeline();
  // Whether the checkpoint, once it is committed, may be the best.
  bool MayBecomeBest(uint64_t version) const;
  // A checkpoint is about to be committed: the earlier ones whose evaluation is still to come,
  // which must not be deleted yet.
  std::vector<uint64_t> HeldBeside(uint64_t version) const;
  // Each returns the new best checkpoint, if it is another one now.
  std::optional<BestCheckpoint> OnCommitted(uint64_t version);
  std::optional<BestCheckpoint> AddEval(const EvalMetrics& eval);

 private:
  std::optional<BestCheckpoint> Match(uint64_t version);
  bool WillBeEvaluated(uint64_t version) const;

  const bool enabled_;
  const uint64_t eval_interval_;
  std::optional<BestCheckpoint> best_;
  uint64_t newest_eval_ = 0;
  std::map<uint64_t, double> losses_;  // by version, of evaluations
  std::set<uint64_t> committed_;       // not evaluated yet
};

}  // namespace tug

#endif  // TUG_COORDINATOR_BEST_TRACKER_H_
