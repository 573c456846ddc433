#include "cli/scheduling_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cli/experiment_arguments.h"
#include "cli/policy_names.h"
#include "cli/ruled_fields.h"
#include "model/replay_profile.h"
#include "proto/job_config.h"

namespace tug {
namespace {

// Steps that are partly of one trial of the tuner and partly of the next: those on their way, and
// those that begin before all nodes have heard of it, with two or three heartbeats.
constexpr uint64_t kStepsBetweenTrials = 3;
constexpr double kSecondsBetweenTrials = 0.6;

constexpr RuledField kRuledFields[] = {
    {"compute", "the experiment is of replays"},
    {"replay.", "use --profiles, --ratios and --transfer"},
    {"cluster.workers", "use --workers"},
    {"cluster.virtual_workers", "each worker carries one; use --workers"},
    {"cluster.servers", "use --servers"},
    {"train.steps", "use --warm-up and --steps"},
    {"trace.", "the last steps are traced"},
    {"optimizer.clip", "with clipping there is nothing to schedule, so it is OFF"},
    {"sync.policy", "the experiment is of BSP"},
    {"comm.scheduler", "use --policies"},
    {"comm.push_codec", "sizes are of FP32; use --transfer for fewer bytes"},
    {"comm.push_codec.", "sizes are of FP32; use --transfer for fewer bytes"},
    {"comm.pull_format", "sizes are of FP32; use --transfer for fewer bytes"},
    {"comm.shared_memory", "bytes are to cross links"},
    {"comm.impair.rate_mbit", "use --link"},
};

absl::Status CheckArguments(const SchedulingArguments& a) {
  std::set<std::string> policies;
  for (const std::string& policy : a.policies) {
    RETURN_IF_ERROR(ParsePolicy(policy).status());
    if (policies.insert(policy).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("--policies: ", policy, " is named twice"));
  }
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
  RETURN_IF_ERROR(CheckNumber("--workers", a.workers, 1, kMostWorkers));
  RETURN_IF_ERROR(CheckNumber("--servers", a.servers, 1, kMostServers));
  RETURN_IF_ERROR(CheckNumber("--hosts", a.hosts, 0, kMostHosts));
  if (a.steps <= kTracedSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps ", a.steps, ": at least ", kTracedSteps + 1));
  }
  return CheckOverrides(a.overrides, kRuledFields);
}

// Of a step: what its bytes and its computing take one after the other.
double LongestStepSeconds(const SchedulingCase& c) {
  return c.scale.transfer_seconds + c.scale.compute_seconds;
}

// A message waits for an answer as long as a step takes, and is sent again after twice that, or
// after the default, whichever is more.
uint64_t ResendMillis(const SchedulingCase& c) {
  return static_cast<uint64_t>(std::clamp(2000 * LongestStepSeconds(c), 1e4, 6e5));
}

}  // namespace

MeasuredSteps MeasuredStepsOf(const SchedulingArguments& a, const SchedulingPlan& plan,
                              const SchedulingCase& c, const std::string& policy) {
  uint64_t before = a.warm_up;
  uint64_t between = 0;
  if (policy == kAutoPolicy) {
    const double shortest_step = std::max(c.scale.transfer_seconds, c.scale.compute_seconds);
    between = kStepsBetweenTrials + static_cast<uint64_t>(kSecondsBetweenTrials / shortest_step);
    before += plan.tuner.trials() * (plan.tuner.steps_per_trial() + between);
  }
  return {before + 1, before + a.steps, before + 1 - between};
}

double LongestSeconds(const SchedulingArguments& a, const SchedulingPlan& plan) {
  double seconds = 0;
  for (const SchedulingCase& c : plan.cases) {
    for (const PolicyResult& policy : c.policies) {
      seconds += static_cast<double>(MeasuredStepsOf(a, plan, c, policy.policy).last) *
                 LongestStepSeconds(c);
    }
  }
  return seconds;
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
  std::set<std::string> titles;
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
      if (!titles.insert(CaseTitle(c)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("--profiles and --ratios: ", CaseTitle(c), " is named twice"));
      }
      c.scale =
          ScaleToLink(profile, plan.nodes, plan.link_bits_per_second, a.transfer_seconds, ratio);
      c.grain = GrainOf(c.scale.model_bytes, a.servers);
      for (const std::string& policy : a.policies) c.policies.push_back({.policy = policy});
    }
  }
  // It is the same of every job, and how many steps those of `auto` have follows from it.
  const SchedulingCase& any = plan.cases.front();
  ASSIGN_OR_RETURN(const JobConfig job,
                   LoadExperimentJob(a, JobOverrides(a, plan, any, any.policies.front())));
  plan.tuner = job.comm().tuner();
  return plan;
}

absl::StatusOr<JobConfig> LoadExperimentJob(const SchedulingArguments& a,
                                            const std::vector<std::string>& overrides) {
  if (!a.job_file.empty()) return LoadJobConfig(a.job_file, overrides);
  return ParseJobConfig(kExperimentJobText, "the job", overrides);
}

std::vector<std::string> JobOverrides(const SchedulingArguments& a, const SchedulingPlan& plan,
                                      const SchedulingCase& c, const PolicyResult& policy) {
  const uint64_t steps = MeasuredStepsOf(a, plan, c, policy.policy).last;
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
      "sync.policy=BSP",
      "checkpoint.interval=0",
      absl::StrCat("comm.scheduler=", absl::AsciiStrToUpper(policy.policy)),
      absl::StrCat("comm.segment_elements=", c.grain.segment_elements),
      absl::StrCat("comm.partition_bytes=", c.grain.partition_bytes),
      absl::StrCat("comm.credit_bytes=", c.grain.credit_bytes),
      absl::StrCat("comm.pull_credit_bytes=", c.grain.pull_credit_bytes),
      "comm.push_codec={}",
      "comm.pull_format=FP32",
      "comm.shared_memory=false",
      absl::StrCat("comm.resend_ms=", ResendMillis(c)),
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
