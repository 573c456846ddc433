// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/daemon.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/files/file_limit.h"
#include "base/files/replace_file.h"
#include "base/log.h"
#include "base/net/host_name.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/journal.h"
#include "coordinator/membership/next_lines.h"
#include "coordinator/observe/live_page.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/observe/run_reporter.h"
#include "coordinator/service/control_service.h"
#include "coordinator/service/job_loop.h"
#include "coordinator/service/job_setup.h"
#include "metrics/coordinator_metrics.h"
#include "metrics/metrics_endpoint.h"
#include "proto/process_name.h"
#include "security/key_file.h"
#include "security/security_rules.h"

namespace tug {
namespace {

// The live page polls every second.
constexpr absl::Duration kViewersPatience = absl::Seconds(2);

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
  if (model.external()) return absl::StrCat(run, ": external model");
  return absl::StrFormat("%s: %s, %d layers, %d wide, %d heads, context %d, batch %d", run,
                         FamilyName(model.family()), model.layers(), model.width(), model.heads(),
                         model.context(), config.train().global_batch());
}

std::string PathIn(const std::string& run_dir, const char* name) {
  return absl::StrCat(run_dir, "/", name);
}

// State of a running job, common to fresh and recovered ones.
struct Job {
  JobConfig config;
  std::string run_dir;
  absl::Time began;
  std::unique_ptr<FileJournal> journal;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<RunReporter> reporter;
  std::unique_ptr<JobLoop> loop;  // last: it uses the members above
};

// Copies what the user reads on the terminal to a file, with times and levels.
absl::Status OpenLog(const std::string& run_dir) {
  const std::string folder = PathIn(run_dir, kLogFolder);
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) return FileError(error.value(), "make the folder", folder);
  return SetLogFile(absl::StrCat(folder, "/coordinator.log"));
}

absl::StatusOr<std::unique_ptr<RunReporter>> MakeReporter(const Job& job, MetricsLog metrics,
                                                          const TimelineStart& start,
                                                          const CoordinatorDaemonOptions& options) {
  const bool taken_up = !options.recover.empty();
  RETURN_IF_ERROR(OpenLog(job.run_dir));
  const bool in_log = options.say_in_log;
  ASSIGN_OR_RETURN(
      RunExports exports,
      RunExports::Open(job.config, {.run_dir = job.run_dir, .start = start, .taken_up = taken_up}));
  RunReporter::Screen screen = {.out = in_log ? nullptr : ProgressLine::Output(WriteStandardError),
                                .terminal = !in_log && StandardErrorIsTerminal(),
                                .continue_with = options.continue_with};
  return std::make_unique<RunReporter>(std::move(metrics), std::move(exports), std::move(screen),
                                       job.run_dir, Title(job.config, job.run_dir), job.config,
                                       job.began);
}

// Address for other hosts of a server that listens at `address`: they cannot use a wildcard.
std::string AddressForOthers(const std::string& address) {
  const absl::StatusOr<HostPort> at = ParseHostPort(address);
  if (!at.ok()) return address;
  const bool wildcard =
      at->host == "0.0.0.0" || at->host == "*" || at->host == "::" || at->host == "[::]";
  return wildcard ? absl::StrCat(HostName(), ":", at->port) : address;
}

// Serves /metrics, and /targets of all processes, at the host of the control service; null if not
// configured. A recovered coordinator uses the same port if it can.
absl::StatusOr<std::unique_ptr<HttpServer>> OpenMetricsOf(const Job& job, ControlService& service) {
  if (!job.config.watch().metrics()) return nullptr;
  ASSIGN_OR_RETURN(const HostPort own, ParseHostPort(service.address()));
  auto port = static_cast<uint16_t>(job.config.watch().metrics_port());
  const std::string path = PathIn(job.run_dir, kMetricsAddressFile);
  std::string before;
  if (std::ifstream file(path); port == 0 && file >> before) {
    const absl::StatusOr<HostPort> at = ParseHostPort(before);
    if (at.ok()) port = static_cast<uint16_t>(at->port);
  }
  const RunReporter& reporter = *job.reporter;
  ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> metrics,
      OpenMetrics(own.host, port, {job.config.name(), kCoordinatorProcess, kCoordinatorProcess},
                  [&](MetricsText& text) {
                    text.Add(CoordinatorMetrics(), {service.Status(), reporter.totals()});
                  }));
  const std::string address = AddressForOthers(metrics->address());
  metrics->Add("/targets", [&service, address]() -> absl::StatusOr<HttpReply> {
    return HttpReply{.type = "application/json", .body = TargetsJson(address, service.Status())};
  });
  RETURN_IF_ERROR(WriteFile(path, absl::StrCat(address, "\n")));
  metrics->Start();
  return metrics;
}

// Starts the live page, and prints its URL. Null: none; a failure is only a warning.
std::unique_ptr<LivePage> StartPage(const JobConfig& config, const JobKeys& keys,
                                    ControlService& service, RunReporter& reporter) {
  if (!config.watch().page()) return nullptr;
  const auto wanted = static_cast<uint16_t>(config.watch().page_port());
  absl::StatusOr<std::unique_ptr<LivePage>> page =
      LivePage::Start({.port = wanted,
                       .keys = keys,
                       .status = [&service] { return service.Status(); },
                       .history = &reporter.history()});
  if (!page.ok()) {
    reporter.Say(
        absl::StrCat("warning: no live page: ", page.status().message(),
                     "; use tug status --watch instead, or set watch.page_port to a free port"));
    return nullptr;
  }
  const std::string url = (*page)->url();
  service.SetPage(url);
  std::string line = absl::StrCat("live page ", url);
  // The coordinator's address tells whether other hosts can reach this one at all.
  const absl::StatusOr<HostPort> own = ParseHostPort(service.address());
  if (own.ok() && !IsLoopback(own->host)) {
    absl::StrAppend(&line, " on this host; from another host, first run: ssh -N -L ",
                    (*page)->port(), ":127.0.0.1:", (*page)->port(), " ", HostName());
  }
  reporter.Say(line);
  return *std::move(page);
}

// Writes keys that were made for the job next to its address. Removes other keys left by a killed
// job, which would be found instead of the right ones.
absl::Status LeaveKeys(const CoordinatorDaemonOptions& options, const std::string& run_dir) {
  const std::string path = PathIn(run_dir, kKeysFile);
  if (options.keep_keys) return ReplaceKeyFile(path, options.keys);
  if (!options.recover.empty()) return absl::OkStatus();
  const absl::StatusOr<JobKeys> left = ReadKeyFile(path);
  if (!left.ok() || !(*left == options.keys)) RemoveKeys(run_dir);
  return absl::OkStatus();
}

// Serves nodes at `listen` until the job has ended, and returns how it ended. `how`: appended to
// the first line for the user (", from step 50").
absl::Status Serve(const CoordinatorDaemonOptions& options, const HostPort& listen,
                   const std::string& how, Job& job) {
  RunReporter& reporter = *job.reporter;
  RETURN_IF_ERROR(LeaveKeys(options, job.run_dir));
  absl::StatusOr<std::unique_ptr<ControlService>> started =
      ControlService::Start(std::move(job.coordinator), job.journal.get(), listen, options.keys);
  if (!started.ok()) {
    // A job that has not begun cannot be recovered.
    if (options.keep_keys && options.recover.empty()) RemoveKeys(job.run_dir);
    return started.status();
  }
  const std::unique_ptr<ControlService> service = *std::move(started);
  JournalRecord listening;
  listening.set_listening(service->address());
  job.journal->Append(listening);
  RETURN_IF_ERROR(job.journal->Sync(job.journal->position()));
  RETURN_IF_ERROR(
      WriteCoordinatorAddress(job.run_dir, {service->address(), service->Status().job()}));
  reporter.Say(absl::StrCat("run folder ", ShortPath(job.run_dir), ", coordinator at ",
                            service->address(), how));
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> metrics, OpenMetricsOf(job, *service));
  if (metrics != nullptr) {
    reporter.Say(absl::StrCat("metrics of all processes: http://",
                              AddressForOthers(metrics->address()),
                              "/targets (http_sd_configs of Prometheus)"));
  }
  const std::unique_ptr<LivePage> page = StartPage(job.config, options.keys, *service, reporter);
  if (options.on_listening) options.on_listening(service->address(), job.run_dir);

  const absl::Status end = job.loop->Run(*service);
  if (metrics != nullptr) {
    metrics.reset();
    std::error_code ignored;
    std::filesystem::remove(PathIn(job.run_dir, kMetricsAddressFile), ignored);
  }
  // A checkpoint that was held for an evaluation may not have become the best.
  const absl::Status trimmed =
      TrimCheckpoints(job.run_dir, {.keep = job.config.checkpoint().keep()});
  if (!trimmed.ok())
    reporter.Say(absl::StrCat("old checkpoints were not deleted: ", trimmed.message()));
  reporter.Finish(service->Status(), job.config.train().steps(), RealTime().Now() - job.began);
  if (const absl::Status removed = job.journal->Remove(); !removed.ok()) {
    reporter.Say(std::string(removed.message()));
  }
  RemoveCoordinatorAddress(job.run_dir);
  if (page != nullptr) page->AwaitViewers(kViewersPatience);
  if (options.keep_keys) RemoveKeys(job.run_dir);
  return end;
}

// Reports what is known before nodes join. A process that recovers the job repeats this, and
// MetricsLog skips the lines that exist.
void ReportStart(const CoordinatorOptions& begin, RunReporter& reporter) {
  if (!begin.data_notice.empty()) reporter.OnNotice(begin.data_notice);
  if (begin.start.restore_path.empty()) return;
  reporter.OnSettings({begin.start.version, begin.changed_settings});
}

// Starts a fresh or resumed job in its folder.
absl::Status Begin(const CoordinatorDaemonOptions& options, CoordinatorOptions begin) {
  Job job{.config = begin.config, .run_dir = begin.run_dir, .began = RealTime().Now()};
  const absl::Status discarded = DiscardUnfinished(job.run_dir);
  if (!job.config.checkpoint().keep_best()) RETURN_IF_ERROR(RemoveBest(job.run_dir));
  const std::string metrics_path = PathIn(job.run_dir, kMetricsFile);
  ASSIGN_OR_RETURN(MetricsLog metrics, MetricsLog::Open(metrics_path, begin.start.number));
  ASSIGN_OR_RETURN(job.reporter, MakeReporter(job, std::move(metrics), begin.start, options));
  RETURN_IF_ERROR(WriteContinueWith(job.run_dir, options.continue_with));
  begin.predicts_steps = options.predict_steps != nullptr;
  begin.continue_with = options.continue_with;
  begin.launched = options.launched;
  JournalRecord first;
  first.set_time_ns(absl::ToUnixNanos(job.began));
  *first.mutable_begin() = BeginOf(begin);
  std::error_code error;
  first.mutable_begin()->set_metrics_bytes(std::filesystem::file_size(metrics_path, error));
  if (error) return FileError(error.value(), "read the size of", metrics_path);
  ASSIGN_OR_RETURN(job.journal, FileJournal::Create(PathIn(job.run_dir, kJournalFile), first));
  job.coordinator = std::make_unique<Coordinator>(begin);
  job.coordinator->KeepJournal(job.journal.get());
  job.loop = std::make_unique<JobLoop>(*job.reporter, job.config, job.run_dir, options);
  if (!options.note.empty()) job.reporter->Say(options.note);
  if (!discarded.ok()) {
    job.reporter->Say(
        absl::StrCat("warning: unfinished checkpoints were not deleted: ", discarded.message()));
  }
  ReportStart(begin, *job.reporter);
  const std::string how =
      begin.start.version == 0 ? "" : absl::StrCat(", from step ", begin.start.version);
  return Serve(options, options.listen, how, job);
}

// Recovers a job from the journal of its dead coordinator.
class TakingUp {
 public:
  TakingUp(const CoordinatorDaemonOptions& options, std::string run_dir)
      : options_(options), path_(PathIn(run_dir, kJournalFile)) {
    job_.run_dir = std::move(run_dir);
  }

  absl::Status Run() {
    const absl::Time begin = RealTime().Now();
    ASSIGN_OR_RETURN(job_.journal,
                     FileJournal::RecoverState(
                         path_, [this](const JournalRecord& record) { return Take(record); }));
    if (address_.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the coordinator of ", job_.run_dir,
                       " died before it published its address: start the job again"));
    }
    RETURN_IF_ERROR(CheckJournalIsWhole());
    RETURN_IF_ERROR(CheckKeysFit(job_.config.security().mode(), options_.keys));
    ASSIGN_OR_RETURN(const HostPort listen, ParseHostPort(address_));
    job_.coordinator->KeepJournal(job_.journal.get());
    job_.coordinator->OnTakenUp(RealTime().Now());
    const std::string how = absl::StrFormat(
        ", recovered at step %d (%d records in %.0f ms)", job_.coordinator->OnStatus(begin).step(),
        job_.journal->position(), absl::ToDoubleMilliseconds(RealTime().Now() - begin));
    return Serve(options_, listen, how, job_);
  }

 private:
  std::string ResumeLine() const {
    return ResumeCommand(job_.config, job_.run_dir, options_.continue_with);
  }

  // Detects a journal cut off between two batches, which looks complete: the job would roll back to
  // a checkpoint that later ones have replaced.
  absl::Status CheckJournalIsWhole() const {
    const absl::StatusOr<FoundCheckpoint> newest = FindCheckpoint(job_.run_dir);
    if (!newest.ok()) return absl::OkStatus();
    const uint64_t version = newest->manifest.version();
    if (job_.coordinator->KnowsOfCheckpoint(version)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_, " is truncated: it lacks the checkpoint ",
                                            newest->folder,
                                            "; continue from that checkpoint: ", ResumeLine()));
  }

  absl::Status Take(const JournalRecord& record) {
    if (record.has_begin()) return Begin(record);
    if (job_.coordinator == nullptr) {
      return absl::DataLossError(
          absl::StrCat(path_,
                       " is damaged: it does not begin with the configuration of its job; continue "
                       "from the last checkpoint: ",
                       ResumeLine()));
    }
    if (record.has_listening()) address_ = record.listening();
    const absl::Status obeyed = job_.coordinator->Replay(record);
    if (!obeyed.ok()) {
      return absl::Status(obeyed.code(),
                          absl::StrCat(path_, ": ", obeyed.message(),
                                       "; continue from the last checkpoint: ", ResumeLine()));
    }
    job_.loop->Recall(record, job_.coordinator->TakeActions());
    return absl::OkStatus();
  }

  absl::Status Begin(const JournalRecord& record) {
    CoordinatorOptions begin = OptionsOf(record.begin());
    std::error_code error;
    if (!std::filesystem::equivalent(begin.run_dir, job_.run_dir, error) || error) {
      return absl::FailedPreconditionError(
          absl::StrCat("the run folder was moved from ", begin.run_dir, " to ", job_.run_dir,
                       ": move it back to ", begin.run_dir, ", then recover"));
    }
    job_.run_dir = begin.run_dir;
    job_.config = begin.config;
    job_.began = absl::FromUnixNanos(record.time_ns());
    ASSIGN_OR_RETURN(MetricsLog metrics,
                     MetricsLog::Continue(PathIn(job_.run_dir, kMetricsFile), begin.start.number,
                                          record.begin().metrics_bytes()));
    ASSIGN_OR_RETURN(job_.reporter, MakeReporter(job_, std::move(metrics), begin.start, options_));
    job_.loop = std::make_unique<JobLoop>(*job_.reporter, job_.config, job_.run_dir, options_);
    ReportStart(begin, *job_.reporter);
    begin.continue_with = options_.continue_with;
    begin.launched = options_.launched;
    job_.coordinator = std::make_unique<Coordinator>(std::move(begin));
    return absl::OkStatus();
  }

  const CoordinatorDaemonOptions& options_;
  std::string path_;
  std::string address_;
  Job job_;
};

absl::Status RecoverState(const CoordinatorDaemonOptions& options) {
  std::error_code error;
  const std::string run_dir = AbsolutePath(options.recover);
  if (!std::filesystem::exists(PathIn(run_dir, kConfigFile), error)) {
    return absl::NotFoundError(absl::StrCat(
        options.recover,
        " is not a run folder: name the run folder of the job to recover, e.g. runs/job-1"));
  }
  if (!std::filesystem::exists(PathIn(run_dir, kJournalFile), error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.recover, " cannot be recovered: its job has ended (no ", kJournalFile,
                     "); ", HowToContinue(options.recover)));
  }
  ASSIGN_OR_RETURN(const OwnedRunFolder folder, OwnRunFolder(run_dir));
  return TakingUp(options, run_dir).Run();
}

}  // namespace

absl::Status RunCoordinator(const CoordinatorDaemonOptions& options) {
  RETURN_IF_ERROR(RaiseFileLimit());
  SetLogProcess(kCoordinatorProcess);
  if (!options.recover.empty()) return RecoverState(options);
  // Checks first what can be refused without leaving anything behind.
  const SecurityConfig::Mode mode = options.config.security().mode();
  RETURN_IF_ERROR(CheckKeysFit(mode, options.keys));
  RETURN_IF_ERROR(CheckMayListen(mode, options.listen.host));
  RETURN_IF_ERROR(CheckCanListen(options.listen));
  ASSIGN_OR_RETURN(RunPlan plan, PlanRun(options.resume, options.run_dir));
  const bool fresh = plan.run_dir.empty();
  OwnedRunFolder folder;
  if (!fresh) {
    ASSIGN_OR_RETURN(folder, OwnRunFolder(plan.run_dir));
    ASSIGN_OR_RETURN(plan, PlanRun(options.resume, options.run_dir));
  }
  RETURN_IF_ERROR(VerifyPlan(plan));
  if (fresh) {
    ASSIGN_OR_RETURN(folder, CreateAndOwnRunFolder(options.run_dir, options.config.name()));
  }
  absl::StatusOr<CoordinatorOptions> job = SetUpJob(options.config, folder.path, plan.restore);
  if (!job.ok()) {
    std::error_code ignored;
    if (folder.made) std::filesystem::remove_all(folder.path, ignored);
    if (!absl::IsOutOfRange(job.status())) return job.status();
    PrintLineToStderr(job.status().message());
    return absl::OkStatus();
  }
  return Begin(options, *std::move(job));
}

}  // namespace tug
