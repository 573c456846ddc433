#ifndef TUG_SIMULATE_COORDINATOR_ACTIONS_H_
#define TUG_SIMULATE_COORDINATOR_ACTIONS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "coordinator/coordinator.h"
#include "simulate/cluster.h"
#include "simulate/node.h"
#include "simulate/stall_clock.h"
#include "simulate/told.h"

namespace tug {

// Carries out what the coordinator of a simulated job asks for, as its daemon does, and notes what
// becomes of it. Not thread-safe.
class CoordinatorActions {
 public:
  CoordinatorActions(SimulatedWorld& world, SimulationResult& result);

  // What it asks for now, and then asks for. A commit takes time, and holds up what follows it.
  void Run(Coordinator& coordinator);
  // What one before it asked for.
  void Run(Coordinator& coordinator, std::vector<Action> actions);
  // The coordinator's process is gone: whatever it was at.
  void Drop();
  // All processes are killed.
  void Kill(const absl::Status& status);
  bool ended() const { return ended_; }
  Told& told() { return told_; }
  StallClock& stalls() { return stalls_; }

 private:
  void Work();
  void Answer(uint64_t version);
  void Do(const CommitCheckpointAction& commit);
  void Do(const StepCompleted& step);
  void Do(const EvalCompleted&) {}
  void Do(const NewBestAction&) {}
  void Do(const TraceCompleted&) {}
  void Do(const TuningAction& tuning);
  void Do(const TimelineBegun& timeline);
  void Do(const NoticeAction& notice);
  void Do(const JobEnded& end);
  // Whether it can be restored: every segment is there once.
  void LookAt(const Manifest& manifest);

  Coordinator* coordinator_ = nullptr;
  SimulatedWorld& world_;
  SimulationResult& result_;
  Told told_;
  StallClock stalls_;
  std::deque<Action> waiting_;
  bool commits_ = false;
  uint64_t process_ = 0;  // number of the coordinator's
  bool ended_ = false;
};

}  // namespace tug

#endif  // TUG_SIMULATE_COORDINATOR_ACTIONS_H_
