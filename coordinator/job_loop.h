#ifndef TUG_COORDINATOR_JOB_LOOP_H_
#define TUG_COORDINATOR_JOB_LOOP_H_

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/time_source.h"
#include "coordinator/control_service.h"
#include "coordinator/coordinator.h"
#include "coordinator/daemon.h"
#include "coordinator/recalled_actions.h"
#include "coordinator/run_reporter.h"

namespace tug {

// Does what the machine asks for, until it says the job has ended. Not thread-safe.
//
// Where another process has done so before and died, all it was asked for is recalled first
// (recalled_actions.h). What it had done is only remembered: lines of metrics.jsonl are told by
// their number (they are written in the order of the actions, RunReporter). A commit whose answer
// is missing may have been carried out, which its folder tells.
class JobLoop {
 public:
  // All outlive it.
  JobLoop(RunReporter& reporter, const JobConfig& config, std::string run_dir,
          const CoordinatorDaemonOptions& options)
      : reporter_(reporter), config_(config), run_dir_(std::move(run_dir)), options_(options) {}

  // What the machine asked for when it replayed a record of the journal. All of them, in order.
  void Recall(const JournalRecord& record, std::vector<Action> actions);

  // Blocks until the job has ended, and says how.
  absl::Status Run(ControlService& service);

 private:
  // Of what another process has done.
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
  // `recalled`: another process may have done it.
  absl::StatusOr<std::string> Commit(const CommitCheckpointAction& commit, bool recalled) const;

  RunReporter& reporter_;
  const JobConfig& config_;
  const std::string run_dir_;
  const CoordinatorDaemonOptions& options_;
  const RealTime time_;
  ControlService* service_ = nullptr;  // while Run runs
  bool stop_asked_ = false;
  std::optional<absl::Status> end_;
  RecalledActions recalled_;
  bool recalled_commit_ = false;  // the next commit is the one that was left
  std::jthread prediction_;       // last: uses the others
};

}  // namespace tug

#endif  // TUG_COORDINATOR_JOB_LOOP_H_
