#ifndef TUG_SIMULATE_FAULT_RUN_H_
#define TUG_SIMULATE_FAULT_RUN_H_

// Runs of seeded scenarios (scenario.h), and what must hold of each. While it runs: run_watch.h.
// Once it has ended:
//
//  - end: the job has ended well, however nodes came and went;
//  - bits: weights and every checkpoint are those of the job without faults, where pushes are
//    summed (BSP, not with SHRINK);
//  - pushes: where every push is an update, each segment has as many as virtual workers have taken
//    steps, the same of everybody, and the weights are those that come of each push once;
//  - checkpoints: each that was committed has every segment once;
//  - told: what people are told is so (told.h), also of a run that failed;
//  - progress: a job that nothing befalls goes on within a multiple of comm.resend_ms;
//  - memory: sums, pushes under way and answers under way stay within their bounds;
//  - timelines: one, where the scenario allows no other;
//  - blame: the job goes on without no node that nothing has befallen.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "simulate/cluster.h"
#include "simulate/scenario.h"

namespace tug {

struct FaultOutcome {
  uint64_t seed = 0;
  std::vector<std::string> violations;
  std::array<uint64_t, kFaultKinds> faults = {};
  uint64_t fenced = 0;
  uint64_t rollbacks = 0;
  uint64_t resumed = 0;  // runs that began with a checkpoint of one before
  uint64_t messages = 0;
  absl::Duration longest_stall;  // SimulationResult
};

// Not thread-safe. Keeps what jobs without faults came to.
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
  // Of the undisturbed job: weights as workers get them, and as checkpoints have them.
  struct Expected {
    WeightsByVersion pulled;
    WeightsByVersion saved;
  };
  const Expected& ExpectedOf(const Scenario& scenario);
  // Adds what comes of one run.
  void RunOnce(const Scenario& scenario, PlantedBug plant, const SayAt& say, SimulatedStore& store,
               FaultOutcome& outcome);

  std::map<std::string, Expected> expected_;  // by kind
};

// Runs seeds in several processes, so that a check that fails in one of them ends that run only:
// that is a violation too.
struct FaultRuns {
  uint64_t first_seed = 1;
  uint64_t runs = 1;
  uint32_t jobs = 1;
  PlantedBug plant = PlantedBug::kNone;
  Conjunction conjunction = Conjunction::kDrawn;  // of all
};
// `on_outcome` is called in no order; false: that is enough. Errors: INTERNAL, from the system.
absl::Status RunFaultSeeds(const FaultRuns& runs,
                           const std::function<bool(const FaultOutcome&)>& on_outcome);

}  // namespace tug

#endif  // TUG_SIMULATE_FAULT_RUN_H_
