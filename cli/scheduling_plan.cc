#include "cli/scheduling_plan.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "model/replay_profile.h"
#include "proto/job_config.h"

namespace tug {
namespace {

constexpr char kAuto[] = "auto";
// Steps that are partly of one trial of the tuner and partly of the next.
constexpr uint64_t kStepsBetweenTrials = 3;

absl::Status CheckPolicy(const std::string& policy) {
  CommConfig::Scheduler scheduler;
  if (CommConfig::Scheduler_Parse(absl::AsciiStrToUpper(policy), &scheduler) &&
      scheduler != CommConfig::SCHEDULER_DEFAULT && absl::AsciiStrToLower(policy) == policy) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--policies ", policy, ": fifo, priority, bytescheduler or auto"));
}

absl::Status CheckArguments(const SchedulingArguments& a) {
  for (const std::string& policy : a.policies) RETURN_IF_ERROR(CheckPolicy(policy));
  if (a.profiles.empty() || a.ratios.empty() || a.policies.empty()) {
    return absl::InvalidArgumentError("--profiles, --ratios and --policies need a value each");
  }
  for (const double ratio : a.ratios) {
    if (!(ratio >= 0.01 && ratio <= 100)) {
      return absl::InvalidArgumentError(absl::StrCat("--ratios ", ratio, ": from 0.01 to 100"));
    }
  }
  if (!(a.transfer_seconds >= 0.001 && a.transfer_seconds <= 60)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--transfer ", a.transfer_seconds, ": from 0.001 to 60 seconds"));
  }
  if (a.workers == 0 || a.servers == 0) {
    return absl::InvalidArgumentError("--workers and --servers: at least 1");
  }
  if (a.steps <= kTracedSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps ", a.steps, ": at least ", kTracedSteps + 1));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t FirstMeasured(const SchedulingArguments& a, const std::string& policy) {
  if (policy != kAuto) return a.warm_up + 1;
  JobConfig config;
  for (const std::string& text : a.overrides) {
    if (absl::StartsWith(text, "comm.tuner.")) ApplyOverride(config, text).IgnoreError();
  }
  FillDefaults(config, 1);
  const TunerConfig& tuner = config.comm().tuner();
  const uint64_t trial = tuner.steps_per_trial() + kStepsBetweenTrials;
  return a.warm_up + tuner.trials() * trial + 1;
}

uint64_t LastMeasured(const SchedulingArguments& a, const std::string& policy) {
  return FirstMeasured(a, policy) - 1 + a.steps;
}

absl::StatusOr<SchedulingPlan> PlanScheduling(const SchedulingArguments& a) {
  RETURN_IF_ERROR(CheckArguments(a));
  SchedulingPlan plan;
  ASSIGN_OR_RETURN(plan.link_bits_per_second, ParseLinkRate(a.link));
  plan.nodes = {.servers = a.servers, .workers = a.workers, .hosts = a.hosts};
  plan.worked_out = a.hosts >= a.servers + a.workers;
  if (BusiestLinkModels(plan.nodes) <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hosts ", a.hosts, ": nothing would cross a link; give at least 2"));
  }
  for (const std::string& name : a.profiles) {
    ASSIGN_OR_RETURN(const ReplayProfile profile, LoadReplayProfile(name));
    if (ReplayForwardMs(profile) + ReplayBackwardMs(profile) <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--profiles ", name, ": it computes nothing, so there is no ratio"));
    }
    for (const double ratio : a.ratios) {
      SchedulingCase& c = plan.cases.emplace_back();
      c.profile = profile.name();
      c.source = name;
      for (const ReplayBlock& block : profile.blocks()) c.blocks.push_back(block.name());
      c.ratio = ratio;
      c.scale =
          ScaleToLink(profile, plan.nodes, plan.link_bits_per_second, a.transfer_seconds, ratio);
      c.grain = GrainOf(c.scale.model_bytes, a.servers);
      for (const std::string& policy : a.policies) c.policies.push_back({.policy = policy});
    }
  }
  return plan;
}

std::vector<std::string> JobOverrides(const SchedulingArguments& a, const SchedulingPlan& plan,
                                      const SchedulingCase& c, const PolicyResult& policy) {
  const uint64_t steps = LastMeasured(a, policy.policy);
  std::vector<std::string> overrides = {
      "compute=REPLAY",
      absl::StrCat("replay.profile=", c.source),
      absl::StrFormat("replay.size_scale=%.9g", c.scale.size_scale),
      absl::StrFormat("replay.time_scale=%.9g", c.scale.time_scale),
      absl::StrCat("cluster.workers=", a.workers),
      absl::StrCat("cluster.virtual_workers=", a.workers),
      absl::StrCat("cluster.servers=", a.servers),
      "cluster.lanes_per_server=1",
      absl::StrCat("train.steps=", steps),
      "optimizer.clip=OFF",  // clipping by the global norm holds all pulls until the last push
      "checkpoint.interval=0",
      absl::StrCat("comm.scheduler=", absl::AsciiStrToUpper(policy.policy)),
      absl::StrCat("comm.segment_elements=", c.grain.segment_elements),
      absl::StrCat("comm.partition_bytes=", c.grain.partition_bytes),
      absl::StrCat("comm.credit_bytes=", c.grain.credit_bytes),
      absl::StrCat("comm.pull_credit_bytes=", c.grain.pull_credit_bytes),
      "comm.shared_memory=false",
      absl::StrCat("trace.first_step=", steps - kTracedSteps),
      absl::StrCat("trace.steps=", kTracedSteps)};
  if (a.hosts == 0) {
    overrides.push_back(
        absl::StrFormat("comm.impair.rate_mbit=%.9g", plan.link_bits_per_second * 1e-6));
  }
  overrides.insert(overrides.end(), a.overrides.begin(), a.overrides.end());
  return overrides;
}

}  // namespace tug
