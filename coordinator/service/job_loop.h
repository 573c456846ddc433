// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_JOB_LOOP_H_
#define TUG_COORDINATOR_SERVICE_JOB_LOOP_H_

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/time_source.h"
#include "coordinator/coordinator.h"
#include "coordinator/observe/run_reporter.h"
#include "coordinator/recalled_actions.h"
#include "coordinator/service/control_service.h"
#include "coordinator/service/daemon.h"

namespace tug {

// Executes the actions of the state machine until the job has ended. Not thread-safe.
//
// When a job is recovered, the actions of the dead process are recalled first (recalled_actions.h).
// Those that it executed are only remembered: RunReporter writes lines of metrics.jsonl in the
// order of the actions, so they are recognised by their number. A commit without a result may have
// been executed; its folder tells.
class JobLoop {
 public:
  // REQUIRES: all arguments outlive this object.
  JobLoop(RunReporter& reporter, const JobConfig& config, std::string run_dir,
          const CoordinatorDaemonOptions& options)
      : reporter_(reporter), config_(config), run_dir_(std::move(run_dir)), options_(options) {}

  // Actions that the machine requested on replaying a journal record. Call with all records, in
  // order.
  void Recall(const JournalRecord& record, std::vector<Action> actions);

  // Blocks until the job has ended, and returns how.
  absl::Status Run(ControlService& service);

 private:
  // Updates the reporter with an action that a dead process executed.
  void Remember(const Action& action);
  void DoAction(const Action& action);
  void Do(const StepCompleted& step) { reporter_.OnStep(step.metrics, time_.Now()); }
  void Do(const EvalCompleted& eval) { reporter_.OnEval(eval.metrics, time_.Now()); }
  void Do(const NoticeAction& notice) { reporter_.OnNotice(notice.text); }
  void Do(const NewBestAction& better);
  void Do(const TraceCompleted& completed) { reporter_.OnTrace(completed.trace); }
  void Do(const TuningAction& tuning);
  void Do(const TimelineBegun& timeline) { reporter_.OnTimeline(timeline, time_.Now()); }
  void Do(const JobEnded& ended) { end_ = ended.status; }
  void Do(const CommitCheckpointAction& commit);
  void DoTuning(const TrialMetrics& trial) { reporter_.OnTrial(trial); }
  void DoTuning(const SettledMetrics& settled) { reporter_.OnSettled(settled); }
  void DoTuning(const DriftMetrics& drift) { reporter_.OnDrift(drift); }
  void DoTuning(const StepPredictionWanted& wanted);
  // `recalled`: a dead process may have executed it.
  absl::StatusOr<std::string> Commit(const CommitCheckpointAction& commit, bool recalled) const;

  RunReporter& reporter_;
  const JobConfig& config_;
  const std::string run_dir_;
  const CoordinatorDaemonOptions& options_;
  const RealTime time_;
  ControlService* service_ = nullptr;  // set by Run
  bool stop_asked_ = false;
  std::optional<absl::Status> end_;
  RecalledActions recalled_;
  bool recalled_commit_ = false;  // the next commit is the one that RecalledActions returned
  std::jthread prediction_;       // last: it uses the members above
};

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_JOB_LOOP_H_
