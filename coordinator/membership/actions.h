// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_ACTIONS_H_
#define TUG_COORDINATOR_MEMBERSHIP_ACTIONS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/best_checkpoint.h"
#include "coordinator/progress/progress.h"
#include "coordinator/progress/schedule_tuning.h"
#include "coordinator/progress/timeline.h"
#include "coordinator/progress/trace_collector.h"

namespace tug {

// Actions that the coordinator requests.
//
// Commits are requested one at a time: the next after OnCheckpointCommitted reported the last one,
// and after the NewBestAction that resulted. So executing actions in order never deletes the
// checkpoint that is, or becomes, the best.
struct CommitCheckpointAction {
  Manifest manifest;
  double pause_seconds = 0;  // upper bound on how long training stopped
  double write_seconds = 0;
  // Earlier versions whose evaluation is pending: one may become the best.
  std::vector<uint64_t> held;
};
struct StepCompleted {
  StepMetrics metrics;
};
struct EvalCompleted {
  EvalMetrics metrics;
};
struct NoticeAction {
  std::string text;
};
// New best checkpoint: an evaluation of its version has the lowest loss.
struct NewBestAction {
  BestCheckpoint best;
};
// Emitted once, in a traced job; not if the job fails before.
struct TraceCompleted {
  JobTrace trace;
};
// With comm.scheduler AUTO. OnStepsPredicted answers a StepPredictionWanted.
struct TuningAction {
  TuningEvent event;
};
// The job rolled back to `version`; later actions belong to timeline `number`.
struct TimelineBegun {
  uint32_t number = 0;
  uint64_t version = 0;
};
// OK, or why the job failed and how to resume it. The last action; all commits have results.
struct JobEnded {
  absl::Status status;
};
using Action = std::variant<CommitCheckpointAction, StepCompleted, EvalCompleted, NoticeAction,
                            NewBestAction, TraceCompleted, TuningAction, TimelineBegun, JobEnded>;

// Actions since the last Take, in order. Not thread-safe.
class ActionQueue {
 public:
  static constexpr size_t kMaxNotices = 1000;  // further ones are dropped

  template <typename T>
  void Add(T action) {
    actions_.emplace_back(std::in_place_type<T>, std::move(action));
  }
  // Adds a notice, once per key.
  void AddNotice(const std::string& key, const std::string& text) {
    if (!TakesNotice(key)) return;
    notice_keys_.insert(key);
    Add(NoticeAction{text});
  }
  bool TakesNotice(const std::string& key) const {
    return notice_keys_.size() < kMaxNotices && !notice_keys_.contains(key);
  }

  size_t size() const { return actions_.size(); }
  std::vector<Action> Take() { return std::exchange(actions_, {}); }

 private:
  std::set<std::string> notice_keys_;
  std::vector<Action> actions_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_ACTIONS_H_
