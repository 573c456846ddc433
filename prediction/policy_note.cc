// SPDX-License-Identifier: Apache-2.0
#include "prediction/policy_note.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "proto/job.pb.h"
#include "scheduler/policy.h"

namespace tug {
namespace {

constexpr LossCause kCauses[] = {
    {"it sends whole blocks, and an urgent one waits for the one in transmission",
     "with partitions in the same order (bytescheduler)",
     [](CommConfig::Scheduler policy) { return PolicyOf(policy).whole_blocks; },
     [](JobConfig& job, SimulatedHosts&) {
       CommConfig& comm = *job.mutable_comm();
       if (PolicyOf(comm.scheduler()).whole_blocks) comm.set_scheduler(CommConfig::BYTESCHEDULER);
     }},
    {"its credit does not keep the links busy",
     "with 4 times the comm.credit_bytes and comm.pull_credit_bytes",
     [](CommConfig::Scheduler) { return true; },
     [](JobConfig& job, SimulatedHosts&) {
       CommConfig& comm = *job.mutable_comm();
       comm.set_credit_bytes(4 * comm.credit_bytes());
       comm.set_pull_credit_bytes(4 * comm.pull_credit_bytes());
     }},
    {"streams share the links unevenly, and an urgent block waits for its slowest stream",
     "with even shares", [](CommConfig::Scheduler) { return true; },
     [](JobConfig&, SimulatedHosts& hosts) { hosts.unevenness = 1; }},
    {"messages take time at workers and lanes, and more of it before an urgent block",
     "with messages that take none (larger comm.partition_bytes: fewer messages)",
     [](CommConfig::Scheduler) { return true; },
     [](JobConfig&, SimulatedHosts& hosts) { hosts.message_seconds = 0; }},
};

constexpr double kExplainedPart = 0.5;  // of a loss
constexpr double kHidden = 0.02;        // part of a step that is exposed
constexpr double kTooShort = 0.05;      // part of a step that is computation

double Gap(const PolicyLoss::Without& without) { return without.seconds - without.other_seconds; }

// The cause that explains the loss; null: none.
const PolicyLoss::Without* CauseOf(const PolicyLoss& loss) {
  const PolicyLoss::Without* best = nullptr;
  for (const PolicyLoss::Without& without : loss.without) {
    if (without.seconds >= loss.seconds) continue;
    const bool level = Gap(without) <= kEqualSteps * without.other_seconds;
    if (level && without.seconds <= loss.other_seconds) return &without;
    if (best == nullptr || Gap(without) < Gap(*best)) best = &without;
  }
  const double enough = kExplainedPart * (loss.seconds - loss.other_seconds);
  return best != nullptr && Gap(*best) <= enough ? best : nullptr;
}

absl::StatusOr<double> StepSeconds(const JobConfig& job, const SimulatedHosts& hosts) {
  ASSIGN_OR_RETURN(const SchedulingPrediction step, PredictScheduling(job, hosts));
  return step.step_seconds;
}

}  // namespace

const std::span<const LossCause> kLossCauses = kCauses;

absl::StatusOr<std::vector<PolicyLoss::Without>> RemoveCauses(const JobConfig& job,
                                                              const SimulatedHosts& hosts,
                                                              CommConfig::Scheduler policy,
                                                              CommConfig::Scheduler other) {
  const auto seconds = [&](const LossCause& cause, CommConfig::Scheduler scheduler) {
    JobConfig changed = job;
    SimulatedHosts changed_hosts = hosts;
    changed.mutable_comm()->set_scheduler(scheduler);
    cause.remove(changed, changed_hosts);
    return StepSeconds(changed, changed_hosts);
  };
  std::vector<PolicyLoss::Without> without;
  for (const LossCause& cause : kLossCauses) {
    if (!cause.applies(policy)) continue;
    ASSIGN_OR_RETURN(const double of_policy, seconds(cause, policy));
    ASSIGN_OR_RETURN(const double of_other, seconds(cause, other));
    without.push_back({&cause, of_policy, of_other});
  }
  return without;
}

std::string WhyItLoses(const PolicyLoss& loss) {
  const std::string slower = absl::StrFormat("%s is %.1f ms slower than %s", loss.policy,
                                             1e3 * (loss.seconds - loss.other_seconds), loss.other);
  const PolicyLoss::Without* cause = CauseOf(loss);
  if (cause == nullptr) {
    return slower + ", and no single cause that the simulator can remove explains half of it";
  }
  return absl::StrFormat("%s because %s; %s it takes %.1f ms, and %s %.1f ms", slower,
                         cause->cause->why, cause->cause->without, 1e3 * cause->seconds, loss.other,
                         1e3 * cause->other_seconds);
}

std::string WhyNoneGains(const std::string& policy, const SchedulingPrediction& step,
                         const SchedulingPrediction& bound) {
  const double seconds = step.step_seconds;
  const std::string none =
      absl::StrFormat("no policy gains %.0f%% over %s: ", 100 * kEqualSteps, policy);
  if (step.exposed_seconds <= kHidden * seconds) {
    return absl::StrFormat("%scommunication is hidden already, except %.1f of %.1f ms", none,
                           1e3 * step.exposed_seconds, 1e3 * seconds);
  }
  if (step.compute_seconds <= kTooShort * seconds) {
    return absl::StrFormat(
        "%san order of sending hides communication behind computation, which is only %.1f of %.1f "
        "ms",
        none, 1e3 * step.compute_seconds, 1e3 * seconds);
  }
  return absl::StrFormat("%sit takes %.1f ms, and the bound of all orders is %.1f ms", none,
                         1e3 * seconds, 1e3 * bound.step_seconds);
}

}  // namespace tug
