#ifndef TUG_SIMULATE_SCENARIO_H_
#define TUG_SIMULATE_SCENARIO_H_

#include <cstdint>
#include <string>

#include "simulate/cluster.h"

namespace tug {

// A whole job and what befalls it, drawn from one seed: the shape of the cluster, the sync policy,
// the network, and the faults with their times.
struct Scenario {
  uint64_t seed = 0;
  SimulationOptions options;
  // The job with one worker, one server and no faults, which has the same bits where pushes are
  // summed (but with SHRINK).
  SimulationOptions undisturbed;
  // What makes two undisturbed jobs the same.
  std::string kind;
  bool same_bits = false;  // as `undisturbed`
  bool counts_pushes =
      false;                  // every push is an update, and the weights say how often each was one
  bool stops = false;         // is asked to, before its last step maybe
  bool one_timeline = false;  // no loss of the scenario takes the job back to a checkpoint
  bool may_fail = false;      // it says so, in order, when a node is lost (sync.policy BACKUP)

  // A line or two for people.
  std::string Text() const;
};

// Pure.
Scenario MakeScenario(uint64_t seed);

}  // namespace tug

#endif  // TUG_SIMULATE_SCENARIO_H_
