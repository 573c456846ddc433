// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_BEST_TRACKER_H_
#define TUG_COORDINATOR_PROGRESS_BEST_TRACKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/best_checkpoint.h"
#include "coordinator/progress/progress.h"
#include "proto/job.pb.h"

namespace tug {

// Finds the checkpoint with the lowest validation loss (checkpoint.keep_best) among versions that
// are both evaluated and committed, in either order. Evaluation and checkpoint of a version have
// the same weights, those after `version` updates. Not thread-safe.
class BestTracker {
 public:
  // Max evaluations without a checkpoint, and checkpoints without an evaluation; older ones are
  // dropped.
  static constexpr size_t kMaxOpen = 1000;

  // `best`: of the resumed run.
  BestTracker(const JobConfig& config, std::optional<BestCheckpoint> best);

  // Call on a rollback, when versions repeat: forgets all but the best.
  void BeginTimeline();
  // Whether the checkpoint may become the best once committed.
  bool MayBecomeBest(uint64_t version) const;
  // Earlier committed checkpoints whose evaluation is pending. They must not be deleted when
  // `version` is committed.
  std::vector<uint64_t> HeldBeside(uint64_t version) const;
  // Each returns the new best checkpoint, if it changed.
  std::optional<BestCheckpoint> OnCommitted(uint64_t version);
  std::optional<BestCheckpoint> AddEval(const EvalMetrics& eval);

 private:
  std::optional<BestCheckpoint> Match(uint64_t version);
  bool WillBeEvaluated(uint64_t version) const;

  const bool enabled_;
  const uint64_t eval_interval_;
  std::optional<BestCheckpoint> best_;
  uint64_t newest_eval_ = 0;
  std::map<uint64_t, double> losses_;  // of evaluations, by version
  std::set<uint64_t> committed_;       // committed versions; pruned to kMaxOpen
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_BEST_TRACKER_H_
