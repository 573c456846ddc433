#ifndef TUG_COORDINATOR_ACTIONS_H_
#define TUG_COORDINATOR_ACTIONS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/best_checkpoint.h"
#include "coordinator/progress.h"
#include "coordinator/schedule_tuning.h"
#include "coordinator/timeline.h"
#include "coordinator/trace_collector.h"

namespace tug {

// What the coordinator asks to be done.
//
// One commit at a time: the next is asked for once OnCheckpointCommitted has answered the last, and
// after the NewBestAction that came of it. Actions carried out in order then never delete the
// checkpoint that is, or becomes, the best.
struct CommitCheckpointAction {
  Manifest manifest;
  double pause_seconds = 0;  // training stood still for this long at most
  double write_seconds = 0;
  // Earlier versions whose evaluation is still to come: they may turn out to be the best.
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
// The checkpoint that is the best one from now on: an evaluation of its version has the lowest
// loss.
struct NewBestAction {
  BestCheckpoint best;
};
// Once, of a traced job; not if it fails before.
struct TraceCompleted {
  JobTrace trace;
};
// With comm.scheduler AUTO. A StepPredictionWanted is answered with OnStepsPredicted.
struct TuningAction {
  TuningEvent event;
};
// The job has gone back to `version`; what is told from here on is of the timeline `number`.
struct TimelineBegun {
  uint32_t number = 0;
  uint64_t version = 0;
};
// OK, or why the job failed and what to do. The last action; every commit has been answered.
struct JobEnded {
  absl::Status status;
};
using Action = std::variant<CommitCheckpointAction, StepCompleted, EvalCompleted, NoticeAction,
                            NewBestAction, TraceCompleted, TuningAction, TimelineBegun, JobEnded>;

// Actions since they were taken last, in order. Not thread-safe.
class ActionQueue {
 public:
  static constexpr size_t kMaxNotices = 1000;  // further ones are dropped

  void Add(Action action) { actions_.push_back(std::move(action)); }
  // Each key once.
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

#endif  // TUG_COORDINATOR_ACTIONS_H_
