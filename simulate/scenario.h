#ifndef TUG_SIMULATE_SCENARIO_H_
#define TUG_SIMULATE_SCENARIO_H_

#include <array>
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
  // summed (but with SHRINK). With ALL_REDUCE, it has as many workers and servers.
  SimulationOptions undisturbed;
  // What makes two undisturbed jobs the same.
  std::string kind;
  bool same_bits = false;  // as `undisturbed`
  bool counts_pushes =
      false;                  // every push is an update, and the weights say how often each was one
  bool conserves = false;     // with error feedback, what pushes left out is in the last checkpoint
  bool resumed = false;       // it begins with the checkpoint of another run
  bool stops = false;         // is asked to, before its last step maybe
  bool one_timeline = false;  // no loss of the scenario takes the job back to a checkpoint
  bool loses_nobody = false;  // nothing befalls a node but that it joins, or is told to go
  // It says so, in order, when a node is lost (sync.policy BACKUP, exchange ALL_REDUCE).
  bool may_fail = false;

  // A line or two for people.
  std::string Text() const;
};

// What a seed's scenario has besides what is drawn: conditions that met only seldom, of which some
// broke an invariant once (docs/reliability.md).
enum class Conjunction : uint8_t {
  kDrawn,                // nothing
  kFramesWithoutMemory,  // encoded pushes, lanes without memory for sums, a link that loses
                         // kCommitted, a virtual worker that moves
  kStopWhileGoingBack,   // the job is stopped while it waits to go back to a checkpoint
  kLossy,                // a tenth of all messages is lost, and repeats are rare
  kLeavesWhileWaiting,   // nodes are told to end while the job waits for others
  kShortPauses,          // the coordinator stands still several times in a row; pushes are encoded,
                         // and nobody takes over from a lost worker
  kCrashes,              // processes that end again and again, together, or as the user interrupts
                         // the job: its supervisor may have to end it
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
// The run that resumes that one from this checkpoint: on other nodes, with other faults. Pure.
Scenario MakeResumed(const Scenario& before, const Manifest& newest);

}  // namespace tug

#endif  // TUG_SIMULATE_SCENARIO_H_
