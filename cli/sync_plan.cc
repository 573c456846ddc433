#include "cli/sync_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
#include "cli/experiment_training.h"
#include "cli/ruled_fields.h"
#include "experiment/sync_report.h"
#include "model/replay_profile.h"
#include "proto/job_config.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

constexpr uint32_t kMostTracedSteps = 200;

constexpr char kDefaultLink[] = "200mbit";
constexpr double kPlainModelBytes = 4e6;  // of the replay where there is no link
constexpr uint64_t kLeastMeasuredSteps = 3;
constexpr double kStartSeconds = 2.5;  // of a job: its processes come and go

constexpr char kThroughputJob[] =
    "name: \"throughput\"\ncompute: REPLAY\noptimizer { clip: OFF }\n";

constexpr RuledField kRuledFields[] = {
    {"compute", "choose with --parts"},
    {"replay.", "use --replay and --step-ms"},
    {"cluster.workers", "use --workers"},
    {"cluster.virtual_workers", "each worker carries one; use --workers"},
    {"cluster.servers", "use --servers"},
    {"train.steps", "use --steps and --train-steps"},
    {"trace.", "the runs that are drawn are traced"},
    {"sync.policy", "use --modes"},
    {"sync.staleness", "use --modes"},
    {"sync.backups", "use --modes"},
    {"sync.local_steps", "use --modes"},
    {"straggler.", "use --stragglers, --slowdown and --pause-probability"},
};

absl::Status CheckArguments(const SyncArguments& a) {
  RETURN_IF_ERROR(CheckNumber("--workers", a.workers, 2, kMostWorkers));
  RETURN_IF_ERROR(CheckNumber("--servers", a.servers, 1, kMostServers));
  RETURN_IF_ERROR(CheckNumber("--hosts", a.hosts, 0, kMostHosts));
  RETURN_IF_ERROR(CheckNumber("--slowdown", a.slowdown, 1, 1000));
  RETURN_IF_ERROR(CheckNumber("--pause-probability", a.pause_probability, 0, 1));
  RETURN_IF_ERROR(CheckNumber("--pause-steps", a.pause_steps, 0, 1000));
  RETURN_IF_ERROR(CheckNumber("--step-ms", a.step_ms, 1, 60000));
  RETURN_IF_ERROR(CheckNumber("--ratio", a.ratio, 0.001, 100));
  RETURN_IF_ERROR(CheckNumber("--steps", a.steps, kLeastMeasuredSteps, 1e6));
  if (a.parts.empty() || a.modes.empty() || a.stragglers.empty()) {
    return absl::InvalidArgumentError("--parts, --modes and --stragglers need a value each");
  }
  return CheckOverrides(a.overrides, kRuledFields);
}

uint64_t DividedUp(uint64_t steps, uint64_t by) { return (steps + by - 1) / by; }

// Whether the page draws it: one job of each policy beside the slow worker.
bool IsDrawn(const std::vector<SyncCase>& modes, size_t index, StragglerKind straggler) {
  if (straggler != StragglerKind::kPersistent || modes[index].local_steps > 1) return false;
  for (size_t before = 0; before < index; ++before) {
    if (modes[before].policy == modes[index].policy && modes[before].local_steps == 1) return false;
  }
  return true;
}

// All that is counted in batches becomes job steps of the mode.
SyncJob PlanJob(const SyncArguments& a, const std::string& part, const SyncCase& mode,
                StragglerKind straggler, const JobConfig& config) {
  const uint64_t h = mode.local_steps;
  SyncJob job{.mode = mode, .straggler = straggler};
  job.name = absl::StrCat(part, "-", NameOf(straggler), "-",
                          absl::StrReplaceAll(mode.name, {{"(", ""}, {")", ""}}));
  const bool throughput = config.compute() == JobConfig::REPLAY;
  const TrainConfig& train = config.train();
  const uint64_t batches = throughput ? uint64_t{a.warm_up} + a.steps
                                      : (a.train_steps > 0 ? a.train_steps : train.steps());
  job.warm_up = DividedUp(std::min<uint64_t>(a.warm_up, batches / 4), h);
  job.steps = std::max(DividedUp(batches, h), job.warm_up + kLeastMeasuredSteps);
  job.eval_interval = throughput ? 0 : DividedUp(train.eval_interval(), h);
  job.schedule = ScheduleOverrides(config, job.steps);
  return job;
}

JobHosts NodesOf(const SyncArguments& a) {
  return {.servers = a.servers, .workers = a.workers, .hosts = a.hosts};
}

absl::Status PlanLink(const SyncArguments& a, SyncPlan& plan) {
  plan.link = a.link.empty() && a.hosts > 0 ? kDefaultLink : a.link;
  if (plan.link.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(plan.link_bits_per_second, ParseLinkRate(plan.link));
  if (BusiestLinkModels(NodesOf(a)) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--hosts ", a.hosts, ": nothing would cross a link; give at least 2"));
}

void ScaleReplay(const SyncArguments& a, const ReplayProfile& profile, SyncPlan& plan) {
  const double step_seconds = a.step_ms * 1e-3;
  if (!plan.link.empty()) {
    plan.scale = ScaleToLink(profile, NodesOf(a), plan.link_bits_per_second, step_seconds * a.ratio,
                             a.ratio);
    plan.grain = GrainOf(plan.scale.model_bytes, a.servers);
    return;
  }
  const double compute_ms = ReplayForwardMs(profile) + ReplayBackwardMs(profile);
  const double full_bytes = static_cast<double>(ReplayParameters(profile)) * sizeof(float);
  plan.scale = {.size_scale = kPlainModelBytes / full_bytes,
                .time_scale = a.step_ms / compute_ms,
                .model_bytes = kPlainModelBytes,
                .compute_seconds = step_seconds};
}

absl::StatusOr<PlannedPart> PlanThroughput(const SyncArguments& a, SyncPlan& plan) {
  ASSIGN_OR_RETURN(const ReplayProfile profile, LoadReplayProfile(a.profile));
  const double compute_ms = ReplayForwardMs(profile) + ReplayBackwardMs(profile);
  if (compute_ms <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--replay ", a.profile, ": it computes nothing, so nobody can be slow"));
  }
  ScaleReplay(a, profile, plan);
  PlannedPart planned{.throughput = true, .job_text = kThroughputJob};
  planned.undisturbed_seconds = a.step_ms * 1e-3;
  planned.part = {.title = "Throughput", .replay = true};
  planned.part.batch_samples = uint64_t{profile.batch()} * a.workers;
  planned.part.about = absl::StrFormat(
      "A replay of %s: workers sleep through its times, %g ms of computing a step, and exchange "
      "real bytes%s.",
      profile.name(), a.step_ms,
      plan.link.empty()
          ? absl::StrFormat(" (%.2f MB a model)", plan.scale.model_bytes * 1e-6)
          : absl::StrFormat(" (%.2f MB a model), which take %g ms one way over the busiest link",
                            plan.scale.model_bytes * 1e-6, a.step_ms * a.ratio));
  return planned;
}

absl::StatusOr<PlannedPart> PlanLearning(const SyncArguments& a) {
  ASSIGN_OR_RETURN(ExperimentTraining training, LoadExperimentTraining(a.job_file));
  PlannedPart planned{.job_path = std::move(training.job_path),
                      .job_text = std::move(training.job_text)};
  planned.part = {.title = "Learning", .about = std::move(training.about)};
  return planned;
}

// For messages.
std::string FileName(const PlannedPart& planned) {
  return planned.job_path.empty() ? "the job" : planned.job_path;
}

// As its file, or its text, and the command line have it, under bsp.
absl::StatusOr<JobConfig> ConfigOf(const SyncArguments& a, const PlannedPart& planned) {
  std::vector<std::string> overrides = {absl::StrCat("cluster.workers=", a.workers),
                                        absl::StrCat("cluster.virtual_workers=", a.workers),
                                        absl::StrCat("cluster.servers=", a.servers)};
  if (planned.throughput) overrides.push_back(absl::StrCat("replay.profile=", a.profile));
  overrides.insert(overrides.end(), a.overrides.begin(), a.overrides.end());
  ASSIGN_OR_RETURN(JobConfig config,
                   ParseJobConfig(planned.job_text, FileName(planned), overrides));
  if (!planned.throughput && config.compute() == JobConfig::REPLAY) {
    return absl::InvalidArgumentError(absl::StrCat(
        FileName(planned), ": a replay learns nothing: use --parts throughput --replay PROFILE"));
  }
  return config;
}

absl::Status PlanJobs(const SyncArguments& a, const SyncPlan& plan, PlannedPart& planned,
                      const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<SyncCase> modes,
                   ParseList("--modes", a.modes, &ParseSyncCase));
  ASSIGN_OR_RETURN(const std::vector<StragglerKind> stragglers,
                   ParseList("--stragglers", a.stragglers, &ParseStraggler));
  ASSIGN_OR_RETURN(const JobConfig config, ConfigOf(a, planned));
  SyncPart& part = planned.part;
  part.virtual_workers = a.workers;
  part.slowdown = a.slowdown;
  if (!planned.throughput) part.batch_samples = config.train().global_batch();
  for (const StragglerKind straggler : stragglers) {
    if (straggler == StragglerKind::kPauses && !planned.throughput &&
        (stragglers.front() != StragglerKind::kNone)) {
      return absl::InvalidArgumentError(
          "--stragglers pauses: name none first, whose steps say how long pauses are");
    }
    for (size_t i = 0; i < modes.size(); ++i) {
      SyncJob job = PlanJob(a, name, modes[i], straggler, config);
      // Undisturbed workers are at `slowdown` times as many steps.
      if (IsDrawn(modes, i, straggler) && (planned.throughput || a.parts.size() == 1)) {
        job.traced_steps = std::min(kMostTracedSteps,
                                    static_cast<uint32_t>(std::ceil(kDrawnSteps * a.slowdown)) + 4);
      }
      // Mistakes are found before anything runs.
      RETURN_IF_ERROR(ParseJobConfig(planned.job_text, FileName(planned),
                                     JobOverrides(a, plan, planned, job, "text.txt"))
                          .status());
      planned.jobs.push_back(std::move(job));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> SyncOverrides(const SyncCase& mode) {
  std::vector<std::string> overrides = {
      absl::StrCat("sync.policy=", SyncConfig::Policy_Name(mode.policy)),
      absl::StrCat("sync.local_steps=", mode.local_steps)};
  if (mode.policy == SyncConfig::SSP) {
    overrides.push_back(absl::StrCat("sync.staleness=", mode.staleness));
  }
  if (mode.policy == SyncConfig::BACKUP) {
    overrides.push_back(absl::StrCat("sync.backups=", mode.backups));
  }
  return overrides;
}

// A job step of local(H) has the pauses of H batches: as often, or longer where it always pauses.
std::vector<std::string> PauseOverrides(const SyncArguments& a, const PlannedPart& part,
                                        const SyncCase& mode) {
  const double pauses = a.pause_probability * mode.local_steps;
  const double longer = std::max(1.0, pauses);
  return {absl::StrFormat("straggler.pause_probability=%.9g", std::min(1.0, pauses)),
          absl::StrFormat("straggler.pause_ms=%.9g",
                          a.pause_steps * part.undisturbed_seconds * 1e3 * longer)};
}

std::vector<std::string> StragglerOverrides(const SyncArguments& a, const PlannedPart& part,
                                            const SyncJob& job) {
  switch (job.straggler) {
    case StragglerKind::kNone:
      return {};
    case StragglerKind::kPersistent:
      return {absl::StrCat("straggler.virtual_worker=", part.part.slow_virtual_worker),
              absl::StrFormat("straggler.slowdown=%.9g", a.slowdown)};
    case StragglerKind::kPauses:
      return PauseOverrides(a, part, job.mode);
  }
  return {};
}

std::vector<std::string> ReplayOverrides(const SyncArguments& a, const SyncPlan& plan) {
  std::vector<std::string> overrides = {
      "compute=REPLAY", absl::StrCat("replay.profile=", a.profile),
      absl::StrFormat("replay.time_scale=%.9g", plan.scale.time_scale),
      absl::StrFormat("replay.size_scale=%.9g", plan.scale.size_scale)};
  if (plan.link.empty()) return overrides;
  for (const auto& [field, value] : {std::pair{"segment_elements", plan.grain.segment_elements},
                                     {"partition_bytes", plan.grain.partition_bytes},
                                     {"credit_bytes", plan.grain.credit_bytes},
                                     {"pull_credit_bytes", plan.grain.pull_credit_bytes}}) {
    overrides.push_back(absl::StrCat("comm.", field, "=", value));
  }
  return overrides;
}

}  // namespace

absl::StatusOr<SyncPlan> PlanSync(const SyncArguments& a) {
  RETURN_IF_ERROR(CheckArguments(a));
  SyncPlan plan;
  RETURN_IF_ERROR(PlanLink(a, plan));
  std::set<std::string> names;
  for (const std::string& name : a.parts) {
    if ((name != "throughput" && name != "learning") || !names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--parts ", name, ": throughput, learning or both, each once"));
    }
    absl::StatusOr<PlannedPart> planned =
        name == "throughput" ? PlanThroughput(a, plan) : PlanLearning(a);
    if (!planned.ok()) return planned.status();
    RETURN_IF_ERROR(PlanJobs(a, plan, *planned, name));
    plan.parts.push_back(*std::move(planned));
  }
  return plan;
}

double LeastSeconds(const PlannedPart& planned) {
  double seconds = 0;
  for (const SyncJob& job : planned.jobs) {
    SyncRun run{.mode = job.mode, .straggler = job.straggler};
    const double pace = planned.part.Bound(run).value_or(1);
    seconds += kStartSeconds + static_cast<double>(job.steps * job.mode.local_steps) *
                                   planned.undisturbed_seconds / pace;
  }
  return seconds;
}

std::vector<std::string> JobOverrides(const SyncArguments& a, const SyncPlan& plan,
                                      const PlannedPart& part, const SyncJob& job,
                                      const std::string& text_path) {
  std::vector<std::string> overrides = {absl::StrCat("cluster.workers=", a.workers),
                                        absl::StrCat("cluster.virtual_workers=", a.workers),
                                        absl::StrCat("cluster.servers=", a.servers),
                                        absl::StrCat("train.steps=", job.steps),
                                        "checkpoint.interval=0",
                                        // Steps are dated when the coordinator hears of them.
                                        "fault.heartbeat_ms=20"};
  const auto add = [&](std::vector<std::string> more) {
    overrides.insert(overrides.end(), more.begin(), more.end());
  };
  add(job.schedule);
  if (part.throughput) {
    add(ReplayOverrides(a, plan));
    add({"cluster.lanes_per_server=1"});
  } else {
    add({absl::StrCat("train.eval_interval=", job.eval_interval)});
    if (part.job_path.empty()) add({absl::StrCat("data.path=", text_path)});
  }
  if (!plan.link.empty() && a.hosts == 0) {
    add({absl::StrFormat("comm.impair.rate_mbit=%.9g", plan.link_bits_per_second * 1e-6)});
  }
  if (!plan.link.empty()) add({"comm.shared_memory=false"});
  add(SyncOverrides(job.mode));
  add(StragglerOverrides(a, part, job));
  if (job.traced_steps > 0) {
    add({"trace.first_step=1", absl::StrCat("trace.steps=", job.traced_steps)});
  }
  add(a.overrides);
  return overrides;
}

}  // namespace tug
