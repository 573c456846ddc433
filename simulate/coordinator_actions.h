#ifndef TUG_SIMULATE_COORDINATOR_ACTIONS_H_
#define TUG_SIMULATE_COORDINATOR_ACTIONS_H_

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

  void Run(Coordinator& coordinator);
  void Commit(Coordinator& coordinator, const CommitCheckpointAction& commit);
  // All processes are killed.
  void Kill(const absl::Status& status);
  bool ended() const { return ended_; }
  Told& told() { return told_; }
  StallClock& stalls() { return stalls_; }

 private:
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
  bool ended_ = false;
};

}  // namespace tug

#endif  // TUG_SIMULATE_COORDINATOR_ACTIONS_H_
