// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_FAULT_RUN_H_
#define TUG_LAB_SIMULATE_FAULT_RUN_H_

// Runs seeded scenarios (scenario.h), and checks them. While a run lasts: checks/run_watch.h. Once
// it has ended:
//
//  - end: the job has finished successfully, whatever nodes came and went;
//  - bits: weights and every checkpoint are those of the job without faults, where pushes are
//    summed (BSP, not with SHRINK);
//  - pushes: where every push is an update, each segment has had one push per step of a virtual
//    worker, all segments the same ones, and the weights are those of applying each push once;
//  - checkpoints: each committed one has every segment once;
//  - told: user-facing statements are true (checks/told.h), also those of a failed run;
//  - progress: without an active fault, the job makes progress within a multiple of comm.resend_ms;
//  - memory: sums, pushes in flight and answers in flight stay within their bounds;
//  - timelines: one, where the scenario allows no other;
//  - blame: the job does not continue without a node that had no fault.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/scenario.h"

namespace tug {

struct FaultOutcome {
  uint64_t seed = 0;
  std::vector<std::string> violations;
  std::array<uint64_t, kFaultKinds> faults = {};
  uint64_t fenced = 0;
  uint64_t rollbacks = 0;
  uint64_t resumed = 0;  // runs that began with a checkpoint of a previous one
  uint64_t messages = 0;
  absl::Duration longest_stall;  // SimulationResult
};

// Not thread-safe. Caches the results of jobs without faults.
class FaultRunner {
 public:
  using SayAt = std::function<void(absl::Duration, const std::string&)>;
  FaultOutcome Run(uint64_t seed, PlantedBug plant = PlantedBug::kNone, const SayAt& say = {}) {
    return Run(MakeScenario(seed), plant, say);
  }
  // A run that ends before its last step is resumed, once.
  FaultOutcome Run(const Scenario& scenario, PlantedBug plant = PlantedBug::kNone,
                   const SayAt& say = {});

 private:
  // The undisturbed job: weights as workers get them, and as checkpoints contain them.
  struct Expected {
    WeightsByVersion pulled;
    WeightsByVersion saved;
  };
  const Expected& ExpectedOf(const Scenario& scenario);
  // Adds the results of one run.
  void RunOnce(const Scenario& scenario, PlantedBug plant, const SayAt& say, SimulatedStore& store,
               FaultOutcome& outcome);

  std::map<std::string, Expected> expected_;  // by Scenario::kind
};

// Runs seeds in several processes, so that a failed check ends only the run it is in. It counts as
// a violation too.
struct FaultRuns {
  uint64_t first_seed = 1;
  uint64_t runs = 1;
  uint32_t jobs = 1;
  PlantedBug plant = PlantedBug::kNone;
  Conjunction conjunction = Conjunction::kDrawn;  // of all runs
};
// Calls `on_outcome` in no order; false ends the runs. Errors: INTERNAL, from the system.
absl::Status RunFaultSeeds(const FaultRuns& runs,
                           const std::function<bool(const FaultOutcome&)>& on_outcome);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_FAULT_RUN_H_
