// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_POLICY_NOTE_H_
#define TUG_PREDICTION_POLICY_NOTE_H_

// Why a scheduling policy gains nothing over another one in simulation, in one sentence.
//
// A loss is explained by simulating both policies again, with one possible cause removed at a time.
// The explanation is the first cause, in the order of kLossCauses, without which the policy is as
// fast as the other one was and is. If there is none, it is the cause without which the policy is
// faster and loses least, but at most half as much.

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prediction/scheduling.h"

namespace tug {

// A possible cause of a loss, and how to simulate a job without it.
struct LossCause {
  const char* why;      // completes "priority is slower than fifo because ..."
  const char* without;  // "with even shares"
  bool (*applies)(CommConfig::Scheduler policy);
  void (*remove)(JobConfig& job, SimulatedHosts& hosts);
};
// Properties of the policy first, then the job's settings, then the hosts.
extern const std::span<const LossCause> kLossCauses;

// A policy that is slower than `other`, seconds per step.
struct PolicyLoss {
  // Both policies, with one cause removed.
  struct Without {
    const LossCause* cause = nullptr;
    double seconds = 0;
    double other_seconds = 0;
  };
  std::string policy;
  std::string other;
  double seconds = 0;
  double other_seconds = 0;
  std::vector<Without> without;
};

// Policies whose steps differ by less are equally fast.
inline constexpr double kEqualSteps = 0.01;

// Simulates `job` under both policies without each cause that applies to `policy`. Errors: those of
// PredictScheduling.
absl::StatusOr<std::vector<PolicyLoss::Without>> RemoveCauses(const JobConfig& job,
                                                              const SimulatedHosts& hosts,
                                                              CommConfig::Scheduler policy,
                                                              CommConfig::Scheduler other);

// One sentence without a full stop. Pure.
std::string WhyItLoses(const PolicyLoss& loss);

// Why no policy is faster than `policy`, which takes `step`; `bound`: of all orders (FluidBound).
// One sentence without a full stop. Pure.
std::string WhyNoneGains(const std::string& policy, const SchedulingPrediction& step,
                         const SchedulingPrediction& bound);

}  // namespace tug

#endif  // TUG_PREDICTION_POLICY_NOTE_H_
