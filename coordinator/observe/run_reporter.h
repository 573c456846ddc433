// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_RUN_REPORTER_H_
#define TUG_COORDINATOR_OBSERVE_RUN_REPORTER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/time_source.h"
#include "coordinator/coordinator.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/run_exports.h"
#include "coordinator/observe/run_history.h"
#include "coordinator/trace/trace_figures.h"
#include "metrics/coordinator_metrics.h"

namespace tug {

// Reports a job to the user at the terminal and in the run folder. Events that the folder already
// has (MetricsLog::Continue) are neither written nor shown again, only remembered for the summary.
// Not thread-safe, except `totals` and `history`.
class RunReporter {
 public:
  // Parameters of ProgressLine.
  struct Screen {
    ProgressLine::Output out;
    bool terminal;
    // Command line that continues the job, without --resume; empty: that of the job's kind.
    std::string continue_with;
  };

  // `config`: resolved. `begin`: when the coordinator began.
  RunReporter(MetricsLog metrics, RunExports exports, Screen screen, std::string run_dir,
              std::string title, const JobConfig& config, absl::Time begin)
      : metrics_(std::move(metrics)),
        exports_(std::move(exports)),
        line_(std::move(screen.out), screen.terminal, config.train().steps(),
              config.replay().resolved_profile().name()),
        continue_with_(std::move(screen.continue_with)),
        run_dir_(std::move(run_dir)),
        title_(std::move(title)),
        replay_(config.replay().resolved_profile().name()),
        config_(config),
        begin_(begin),
        tuning_text_(config.comm().scheduler() == CommConfig::AUTO
                         ? "comm.scheduler AUTO: the job ended before the first tuning trial was "
                           "complete. Train longer, or set comm.tuner.steps_per_trial lower"
                         : "") {}

  void OnStep(const StepMetrics& metrics, absl::Time now);
  void OnEval(const EvalMetrics& metrics, absl::Time now);
  void OnCheckpoint(const CommitCheckpointAction& commit, const std::string& folder);
  void OnNotice(const std::string& text);
  // The run was resumed. Shows nothing at the terminal.
  void OnSettings(const SettingsChange& change);
  void OnTimeline(const TimelineBegun& timeline, absl::Time now);
  void OnTrial(const TrialMetrics& metrics);
  void OnSettled(const SettledMetrics& metrics);
  void OnDrift(const DriftMetrics& metrics);
  // Writes the trace file and remembers its summary.
  void OnTrace(const JobTrace& trace);
  // Remembers a trace written by a process that died.
  void RecallTrace(const TraceRange& range);
  void Say(const std::string& text) { line_.Say(text); }
  // Updates wait reason, last step, history and staleness.
  void OnStatus(const StatusReply& status);

  // Totals so far. Thread-safe.
  JobTotals totals() const {
    absl::MutexLock lock(&totals_mutex_);
    return totals_;
  }
  // History so far, for viewers. Thread-safe while this object lives.
  const RunHistory& history() const { return history_; }

  // Errors: metrics cannot be written (disk full).
  absl::Status Flush();

  // Draws the loss curve, and prints the summary if the job is done. `job_steps`: train.steps.
  void Finish(const StatusReply& status, uint64_t job_steps, absl::Duration time);

 private:
  // ", 12,345 tokens/s, training loss 1.2345" and the newest evaluation; in a replay ", 99
  // samples/s, 512.3 ms a step". Omits losses of steps after `end`: the job rolled back and ended
  // there.
  std::string ResultText(uint64_t end) const;
  void Summarise(const StatusReply& status, uint64_t job_steps, absl::Duration time);
  void PrintNextLines(const StatusReply& status, bool complete);
  absl::Status DrawLossCurve();
  template <typename Change>
  void Count(Change change) {
    absl::MutexLock lock(&totals_mutex_);
    change(totals_);
  }
  // Writes a line with `write`, and shows `text`.
  template <typename Write>
  void Tell(Write write, const std::string& text) {
    const bool told = metrics_.is_behind();
    write();
    history_.OnEvent(text, SinceBegin(RealTime().Now()));
    if (!told) line_.Say(text);
  }
  double SinceBegin(absl::Time now) const { return absl::ToDoubleSeconds(now - begin_); }

  MetricsLog metrics_;
  RunExports exports_;
  ProgressLine line_;
  const std::string continue_with_;
  RunHistory history_;
  const std::string run_dir_;
  const std::string title_;
  const std::string replay_;  // name of the profile; empty: training
  const JobConfig config_;
  const absl::Time begin_;
  WorkerTotals workers_;
  std::string tuning_text_;  // with AUTO: the settled schedule, or that tuning had not settled
  std::string trace_text_;   // summary of the trace; empty: none
  std::vector<std::string> blame_lines_;  // summary of its critical paths
  std::optional<StepMetrics> newest_step_;
  std::optional<EvalMetrics> newest_eval_;
  double seconds_ = 0;
  mutable absl::Mutex totals_mutex_;
  JobTotals totals_ ABSL_GUARDED_BY(totals_mutex_);  // for display only
};

// "validation loss 1.4321, perplexity 4.19, accuracy 57.3% (12,345 tokens)"; for a classifier
// without perplexity, and with samples.
std::string EvalText(const EvalMetrics& metrics, const ModelConfig& model);

// "best 1.4012 at step 250 (of 64 samples; the last evaluation read the whole split)".
std::string BestText(double loss, uint64_t step, const TrainConfig& train);

// How a job of `job_steps` steps ended: "done", "stopped" or "stopped early". REQUIRES: it is done.
std::string EndReason(const StatusReply& status, uint64_t job_steps);

// "compute 312 ms and exposed communication 41 ms per step, overlap 0.87": means over workers
// and steps.
std::string TraceText(const std::vector<StepFigures>& figures);

// Path relative to the current folder if it is inside, else unchanged.
std::string ShortPath(const std::string& path);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_RUN_REPORTER_H_
