#include "cli/exchange_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
#include "cli/ruled_fields.h"
#include "experiment/exchange_cost.h"
#include "model/replay_profile.h"
#include "proto/job_config.h"

namespace tug {
namespace {

constexpr uint32_t kLeastMeasuredSteps = 3;
constexpr char kProfile[] = "resnet50";
constexpr double kMegabytes = 8;
// Of a replayed model: fewer than where only pushes and pulls are sent, since an all-reduce sends a
// segment in 2 (N - 1) messages of a part of it.
constexpr double kSegments = 256;

constexpr char kReplayJob[] = "name: \"exchange\"\ncompute: REPLAY\noptimizer { clip: OFF }\n";

constexpr RuledField kRuledFields[] = {
    {"compute", "name a JOB, or leave it out for a replay"},
    {"replay.", "use --replay, --megabytes and --step-ms, or name a JOB"},
    {"cluster.workers", "use --workers"},
    {"cluster.virtual_workers", "each worker carries one; use --workers"},
    {"cluster.servers", "use --cases"},
    {"cluster.lanes_per_server", "an all-reduce has one lane, and so have the others here"},
    {"cluster.spare_servers", "hosts are counted without them"},
    {"train.steps", "use --warm-up and --steps"},
    {"train.eval_interval", "steps are measured without evaluations between them"},
    {"sync.policy", "the experiment is of BSP"},
    {"placement.kind", "use --cases"},
    {"exchange", "use --cases"},
    {"collective.algorithm", "use --cases"},
    {"collective.format", "bytes are of FP32; use tug experiment compression for fewer"},
    {"comm.push_codec", "bytes are of FP32; use tug experiment compression for fewer"},
    {"comm.push_codec.", "bytes are of FP32; use tug experiment compression for fewer"},
    {"comm.pull_format", "bytes are of FP32; use tug experiment compression for fewer"},
    {"comm.shared_memory", "a worker and the server beside it share it"},
    {"comm.impair.rate_mbit", "use --links"},
};

absl::Status CheckArguments(const ExchangeArguments& a) {
  RETURN_IF_ERROR(CheckNumber("--workers", a.workers, 2, kMostServers));
  RETURN_IF_ERROR(CheckNumber("--steps", a.steps, kLeastMeasuredSteps, 1e6));
  RETURN_IF_ERROR(CheckNumber("--warm-up", a.warm_up, 0, 1e6));
  RETURN_IF_ERROR(CheckNumber("--step-ms", a.step_ms, 0, 60000));
  RETURN_IF_ERROR(CheckNumber("--latency-us", a.latency_us, 0, 1e6));
  for (const double megabytes : a.megabytes) {
    RETURN_IF_ERROR(CheckNumber("--megabytes", megabytes, 0.001, 1e5));
  }
  if (a.links.empty()) return absl::InvalidArgumentError("--links needs a value");
  const bool of_replay = !a.profile.empty() || !a.megabytes.empty() || a.step_ms > 0;
  if (!a.job_file.empty() && of_replay) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--replay, --megabytes and --step-ms are of the replay: leave them out, or ", a.job_file));
  }
  return CheckOverrides(a.overrides, kRuledFields);
}

absl::Status PlanTraining(const ExchangeArguments& a, ExchangePlan& plan) {
  if (!a.job_file.empty()) {
    ASSIGN_OR_RETURN(plan.training, LoadExperimentTraining(a.job_file));
    plan.sizes = {{}};
    return absl::OkStatus();
  }
  plan.replays = true;
  plan.profile = a.profile.empty() ? kProfile : a.profile;
  ASSIGN_OR_RETURN(const ReplayProfile profile, LoadReplayProfile(plan.profile));
  const double compute_ms = ReplayForwardMs(profile) + ReplayBackwardMs(profile);
  if (a.step_ms > 0 && compute_ms <= 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--step-ms %g: %s computes nothing; leave it out", a.step_ms, plan.profile));
  }
  plan.time_scale = a.step_ms > 0 ? a.step_ms / compute_ms : 0;
  plan.training.job_text = kReplayJob;
  plan.training.about = absl::StrFormat(
      "A replay of %s: workers %s, and exchange real bytes.", profile.name(),
      a.step_ms > 0 ? absl::StrFormat("sleep through %g ms of computing a step", a.step_ms)
                    : "compute nothing");
  const double full_bytes = static_cast<double>(ReplayParameters(profile)) * sizeof(float);
  for (const double megabytes : a.megabytes.empty() ? std::vector{kMegabytes} : a.megabytes) {
    const double bytes = megabytes * 1e6;
    for (const PlannedSize& other : plan.sizes) {
      if (other.bytes == bytes) {
        return absl::InvalidArgumentError(
            absl::StrFormat("--megabytes: %g is named twice", megabytes));
      }
    }
    plan.sizes.push_back({bytes, bytes / full_bytes, GrainOf(bytes, /*servers=*/1, kSegments)});
  }
  return absl::OkStatus();
}

absl::Status PlanCases(const ExchangeArguments& a, ExchangePlan& plan) {
  ASSIGN_OR_RETURN(plan.cases,
                   ParseList("--cases", a.cases.empty() ? AllExchangeCases(a.workers) : a.cases,
                             &ParseExchangeCase));
  ASSIGN_OR_RETURN(plan.links, ParseList("--links", a.links, &ParsePlannedLink));
  uint32_t hosts = 0;
  for (const ExchangeCase& exchange : plan.cases) {
    RETURN_IF_ERROR(CheckNumber(absl::StrCat("--cases ", exchange.name, ": servers").c_str(),
                                exchange.Servers(a.workers), 1, kMostServers));
    hosts = std::max(hosts, exchange.Hosts(a.workers));
  }
  const bool has_links = std::any_of(plan.links.begin(), plan.links.end(),
                                     [](const PlannedLink& l) { return l.bits_per_second > 0; });
  if (!has_links) return absl::OkStatus();
  plan.hosts = hosts;
  return CheckNumber("--links and --workers: hosts", hosts, 1, kMostHosts);
}

absl::StatusOr<JobConfig> ConfigOf(const ExchangeArguments& a, const ExchangePlan& plan,
                                   const ExchangeJob& job) {
  return ParseJobConfig(plan.training.job_text, plan.training.FileName(),
                        JobOverrides(a, plan, job));
}

// A message that waits for an answer is sent again after twice what a step takes, or after the
// default, whichever is more.
uint64_t ResendMillis(const ExchangeArguments& a, const ExchangeJob& job) {
  const LinkCost link = {.alpha = a.latency_us * 1e-6,
                         .beta = 1 / PayloadBytesPerSecond(job.link.bits_per_second)};
  const double seconds = CostOfExchange(job.exchange, a.workers, job.size.bytes, link).seconds;
  return static_cast<uint64_t>(std::clamp(2000 * seconds + 2 * a.step_ms, 1e4, 6e5));
}

}  // namespace

absl::StatusOr<ExchangePlan> PlanExchange(const ExchangeArguments& a) {
  RETURN_IF_ERROR(CheckArguments(a));
  ExchangePlan plan;
  RETURN_IF_ERROR(PlanTraining(a, plan));
  RETURN_IF_ERROR(PlanCases(a, plan));
  for (const PlannedLink& link : plan.links) {
    for (const PlannedSize& size : plan.sizes) {
      for (const ExchangeCase& exchange : plan.cases) {
        const std::string of_size =
            plan.sizes.size() == 1 ? "" : absl::StrFormat("%gMB-", size.bytes * 1e-6);
        plan.jobs.push_back(
            {absl::StrCat(link.name, "-", of_size, absl::StrReplaceAll(exchange.name, {{":", ""}})),
             exchange, link, size});
      }
    }
  }
  ASSIGN_OR_RETURN(const JobConfig config, ConfigOf(a, plan, plan.jobs.front()));
  plan.evaluates = config.compute() != JobConfig::REPLAY;
  // Parsed without them, the job has the schedule that it has by itself.
  plan.schedule = ScheduleOverrides(config, uint64_t{a.warm_up} + a.steps);
  // Mistakes are found before anything runs.
  for (const ExchangeJob& job : plan.jobs) {
    const auto parsed = ConfigOf(a, plan, job);
    if (!parsed.ok()) {
      return absl::Status(parsed.status().code(), absl::StrCat("--cases ", job.exchange.name, ": ",
                                                               parsed.status().message()));
    }
  }
  return plan;
}

std::vector<std::string> JobOverrides(const ExchangeArguments& a, const ExchangePlan& plan,
                                      const ExchangeJob& job) {
  const ExchangeKindRow& row = job.exchange.row();
  std::vector<std::string> overrides = {
      absl::StrCat("cluster.workers=", a.workers),
      absl::StrCat("cluster.virtual_workers=", a.workers),
      absl::StrCat("cluster.servers=", job.exchange.Servers(a.workers)),
      "cluster.lanes_per_server=1",
      absl::StrCat("placement.kind=", PlacementConfig::Kind_Name(row.placement)),
      absl::StrCat("exchange=", JobConfig::Exchange_Name(row.exchange)),
      absl::StrCat("collective.algorithm=", CollectiveConfig::Algorithm_Name(row.algorithm)),
      "collective.format=FP32", "comm.push_codec={}", "comm.pull_format=FP32", "sync.policy=BSP",
      "checkpoint.interval=0",
      // Steps are dated when the coordinator hears of them.
      "fault.heartbeat_ms=20"};
  const auto add = [&](const std::vector<std::string>& more) {
    overrides.insert(overrides.end(), more.begin(), more.end());
  };
  if (plan.replays) {
    const LinkGrain& grain = job.size.grain;
    add({absl::StrCat("replay.profile=", plan.profile),
         absl::StrFormat("replay.size_scale=%.9g", job.size.size_scale),
         absl::StrFormat("replay.time_scale=%.9g", plan.time_scale),
         absl::StrCat("comm.segment_elements=", grain.segment_elements),
         absl::StrCat("comm.partition_bytes=", grain.partition_bytes),
         absl::StrCat("comm.credit_bytes=", grain.credit_bytes),
         absl::StrCat("comm.pull_credit_bytes=",
                      grain.pull_credit_bytes * job.exchange.Servers(a.workers))});
    if (job.link.bits_per_second > 0) {
      add({absl::StrCat("comm.resend_ms=", ResendMillis(a, job))});
    }
  }
  if (!plan.schedule.empty()) {
    add({absl::StrCat("train.steps=", uint64_t{a.warm_up} + a.steps)});
    add(plan.schedule);
  }
  if (plan.evaluates) add({"train.eval_interval=0"});
  add(a.overrides);
  return overrides;
}

}  // namespace tug
