// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_SCENARIO_H_
#define TUG_LAB_SIMULATE_SCENARIO_H_

#include <array>
#include <cstdint>
#include <string>

#include "lab/simulate/cluster.h"

namespace tug {

// A whole job and its faults, drawn from one seed: the shape of the cluster, the sync policy, the
// network, and the faults with their times.
struct Scenario {
  uint64_t seed = 0;
  SimulationOptions options;
  // The job with one worker, one server and no faults, which has the same bits where pushes are
  // summed (except with SHRINK). With ALL_REDUCE, it has as many workers and servers as the
  // scenario.
  SimulationOptions undisturbed;
  // Key of the undisturbed job: jobs with the same key are the same.
  std::string kind;
  bool same_bits = false;      // has the bits of `undisturbed`
  bool counts_pushes = false;  // each push is an update; the weights show how often it was applied
  bool conserves = false;      // with error feedback, the last checkpoint has all residuals
  bool resumed = false;        // begins with the checkpoint of another run
  bool stops = false;          // is asked to stop, possibly before its last step
  bool one_timeline = false;   // no loss of the scenario makes the job roll back to a checkpoint
  bool loses_nobody = false;   // no node is killed, frozen or cut off
  // The job may fail, with a proper message, when a node is lost (sync.policy BACKUP, exchange
  // ALL_REDUCE).
  bool may_fail = false;

  // User-facing description of a line or two.
  std::string Text() const;
};

// Conditions added to a drawn scenario: rare combinations, some of which once broke an invariant
// (docs/reliability.md).
enum class Conjunction : uint8_t {
  kDrawn,                // none
  kFramesWithoutMemory,  // encoded pushes, lanes without memory for sums, a link that loses
                         // kCommitted, a virtual worker that moves
  kStopWhileGoingBack,   // the job is stopped while it waits to roll back to a checkpoint
  kLossy,                // a tenth of all messages is lost, and repeats are rare
  kLeavesWhileWaiting,   // nodes are told to end while the job waits for others
  kShortPauses,  // the coordinator is frozen several times in a row; pushes are encoded, and no
                 // worker takes over from a lost one
  kCrashes,      // processes that exit repeatedly, together, or as the user interrupts the job: its
                 // supervisor may have to end it
};
struct ConjunctionName {
  Conjunction conjunction;
  const char* name;
};
inline constexpr std::array<ConjunctionName, 6> kConjunctions = {{
    {Conjunction::kFramesWithoutMemory, "frames-without-memory"},
    {Conjunction::kStopWhileGoingBack, "stop-while-going-back"},
    {Conjunction::kLossy, "lossy"},
    {Conjunction::kLeavesWhileWaiting, "leaves-while-waiting"},
    {Conjunction::kShortPauses, "short-pauses"},
    {Conjunction::kCrashes, "crashes"},
}};

// Pure.
Scenario MakeScenario(uint64_t seed, Conjunction conjunction = Conjunction::kDrawn);
// The run that resumes `before` from checkpoint `newest`: on other nodes, with other faults. Pure.
Scenario MakeResumed(const Scenario& before, const Manifest& newest);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_SCENARIO_H_
