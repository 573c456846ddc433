#include "coordinator/daemon.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/control_service.h"
#include "coordinator/job_setup.h"
#include "coordinator/metrics_log.h"
#include "coordinator/run_folder.h"
#include "coordinator/run_reporter.h"

namespace tug {
namespace {

constexpr absl::Duration kLoopTime = absl::Milliseconds(100);

const char* FamilyName(ModelConfig::Family family) {
  switch (family) {
    case ModelConfig::ENCODER:
      return "encoder";
    case ModelConfig::ENCODER_DECODER:
      return "encoder and decoder";
    default:
      return "GPT";
  }
}

std::string Title(const JobConfig& config, const std::string& run_dir) {
  const ModelConfig& model = config.model();
  const std::string run = std::filesystem::path(run_dir).filename().string();
  if (config.compute() == JobConfig::REPLAY) {
    return absl::StrCat(run, ": replay of ", config.replay().resolved_profile().name());
  }
  if (model.external()) return absl::StrCat(run, ": a model of the workers' own");
  return absl::StrFormat("%s: %s, %d layers, %d wide, %d heads, context %d, batch %d", run,
                         FamilyName(model.family()), model.layers(), model.width(), model.heads(),
                         model.context(), config.train().global_batch());
}

// Does what the machine asks for, until it says the job has ended.
class JobLoop {
 public:
  JobLoop(ControlService& service, RunReporter& reporter, const JobConfig& config,
          std::string run_dir, const CoordinatorDaemonOptions& options)
      : service_(service),
        reporter_(reporter),
        config_(config),
        run_dir_(std::move(run_dir)),
        options_(options) {}

  absl::Status Run() {
    const std::function<bool()>& stop_wanted = options_.stop_wanted;
    while (!end_.has_value()) {
      if (stop_wanted && stop_wanted() && !stop_asked_) {
        stop_asked_ = true;
        reporter_.Say(service_.Stop().message());
      }
      for (const Action& action : service_.NextActions(kLoopTime)) {
        std::visit([this](const auto& one) { Do(one); }, action);
      }
      reporter_.OnStatus(service_.Status(), config_.cluster());
      if (const absl::Status written = reporter_.Flush(); !written.ok()) {
        service_.OnTrouble(std::string(written.message()));
      }
    }
    return *end_;
  }

 private:
  void Do(const StepCompleted& step) { reporter_.OnStep(step.metrics, time_.Now()); }
  void Do(const EvalCompleted& eval) { reporter_.OnEval(eval.metrics, time_.Now()); }
  void Do(const NoticeAction& notice) { reporter_.OnNotice(notice.text); }
  void Do(const NewBestAction& better) {
    const absl::Status written = WriteBest(run_dir_, better.best);
    if (!written.ok()) service_.OnTrouble(std::string(written.message()));
  }
  void Do(const TraceCompleted& completed) { reporter_.OnTrace(completed.trace); }
  void Do(const TuningAction& tuning) {
    std::visit([this](const auto& event) { DoTuning(event); }, tuning.event);
  }
  void DoTuning(const TrialMetrics& trial) { reporter_.OnTrial(trial); }
  void DoTuning(const SettledMetrics& settled) { reporter_.OnSettled(settled); }
  void DoTuning(const DriftMetrics& drift) { reporter_.OnDrift(drift); }
  // One at a time: the next is wanted only when this one has been answered.
  void DoTuning(const StepPredictionWanted& wanted) {
    prediction_ = std::jthread([this, wanted](const std::stop_token& stop) {
      absl::StatusOr<std::vector<double>> seconds = options_.predict_steps(config_, wanted, stop);
      if (stop.stop_requested()) return;
      service_.OnStepsPredicted(wanted.round, std::move(seconds).value_or(std::vector<double>()));
    });
  }
  void Do(const TimelineBegun& timeline) { reporter_.OnTimeline(timeline); }
  void Do(const JobEnded& ended) { end_ = ended.status; }
  void Do(const CommitCheckpointAction& commit) {
    const absl::StatusOr<std::string> folder = CommitCheckpoint(
        run_dir_, commit.manifest, {.keep = config_.checkpoint().keep(), .held = commit.held});
    if (folder.ok()) reporter_.OnCheckpoint(commit, *folder);
    service_.OnCheckpointCommitted(commit.manifest.version(), folder.status());
  }

  ControlService& service_;
  RunReporter& reporter_;
  const JobConfig& config_;
  const std::string run_dir_;
  const CoordinatorDaemonOptions& options_;
  const RealTime time_;
  bool stop_asked_ = false;
  std::optional<absl::Status> end_;
  std::jthread prediction_;  // last: uses the others
};

// Serves one job in its folder, from listening to the summary.
absl::Status Serve(const CoordinatorDaemonOptions& options, CoordinatorOptions job) {
  const JobConfig config = job.config;
  const std::string run_dir = job.run_dir;
  RETURN_IF_ERROR(DiscardUnfinished(run_dir));
  if (!config.checkpoint().keep_best()) RETURN_IF_ERROR(RemoveBest(run_dir));
  ASSIGN_OR_RETURN(MetricsLog metrics,
                   MetricsLog::Open(absl::StrCat(run_dir, "/", kMetricsFile), job.start.number));
  const RealTime time;
  RunReporter reporter(std::move(metrics), stderr, isatty(STDERR_FILENO) != 0, run_dir,
                       Title(config, run_dir), config, time.Now());
  const uint64_t start_version = job.start.version;
  const std::string data_notice = job.data_notice;
  job.predicts_steps = options.predict_steps != nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<ControlService> service,
                   ControlService::Start(std::move(job), options.listen));
  RETURN_IF_ERROR(WriteCoordinatorAddress(run_dir, service->address()));
  reporter.Say(absl::StrCat("run folder ", ShortPath(run_dir), ", coordinator at ",
                            service->address(),
                            start_version == 0 ? "" : absl::StrCat(", from step ", start_version)));
  if (!options.note.empty()) reporter.Say(options.note);
  if (!data_notice.empty()) reporter.OnNotice(data_notice);
  if (options.on_listening) options.on_listening(service->address(), run_dir);

  const absl::Time start = time.Now();
  const absl::Status end = JobLoop(*service, reporter, config, run_dir, options).Run();
  // One that was held for an evaluation may have turned out not to be the best.
  const absl::Status trimmed = TrimCheckpoints(run_dir, {.keep = config.checkpoint().keep()});
  if (!trimmed.ok()) reporter.Say(absl::StrCat("old checkpoints stay: ", trimmed.message()));
  reporter.Finish(service->Status(), config.train().steps(), time.Now() - start);
  RemoveCoordinatorAddress(run_dir);
  return end;
}

}  // namespace

absl::Status RunCoordinator(const CoordinatorDaemonOptions& options) {
  // What can be refused without leaving anything behind is refused first.
  RETURN_IF_ERROR(CheckCanListen(options.listen));
  ASSIGN_OR_RETURN(RunPlan plan, PlanRun(options.resume, options.run_dir));
  const bool fresh = plan.run_dir.empty();
  if (fresh) {
    ASSIGN_OR_RETURN(plan.run_dir, CreateRunFolder(options.run_dir, options.config.name()));
  }
  absl::StatusOr<CoordinatorOptions> job = SetUpJob(options.config, plan.run_dir, plan.restore);
  if (!job.ok()) {
    std::error_code ignored;
    if (fresh) std::filesystem::remove_all(plan.run_dir, ignored);
    return job.status();
  }
  return Serve(options, *std::move(job));
}

}  // namespace tug
