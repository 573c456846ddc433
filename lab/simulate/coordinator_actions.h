// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_COORDINATOR_ACTIONS_H_
#define TUG_LAB_SIMULATE_COORDINATOR_ACTIONS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "coordinator/coordinator.h"
#include "lab/simulate/checks/told.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/node.h"
#include "lab/simulate/stall_clock.h"

namespace tug {

// Carries out the actions of a simulated job's coordinator, as its daemon does, and records their
// outcome. Not thread-safe.
class CoordinatorActions {
 public:
  CoordinatorActions(SimulatedWorld& world, SimulationResult& result);

  // Carries out its pending actions and those that follow. A commit takes time, and delays the
  // actions behind it.
  void Run(Coordinator& coordinator);
  // Carries out actions of the previous coordinator first.
  void Run(Coordinator& coordinator, std::vector<Action> actions);
  // The coordinator's process is gone, with its pending actions.
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
  // Checks that the checkpoint can be restored: it has every segment once.
  void LookAt(const Manifest& manifest);

  Coordinator* coordinator_ = nullptr;
  SimulatedWorld& world_;
  SimulationResult& result_;
  Told told_;
  StallClock stalls_;
  std::deque<Action> waiting_;
  bool commits_ = false;
  uint64_t process_ = 0;  // number of the coordinator's process
  bool ended_ = false;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_COORDINATOR_ACTIONS_H_
