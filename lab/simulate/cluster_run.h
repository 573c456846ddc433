// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CLUSTER_RUN_H_
#define TUG_LAB_SIMULATE_CLUSTER_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/journal.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/coordinator_actions.h"
#include "lab/simulate/node.h"
#include "launch/supervisor_core.h"

namespace tug {

// Nodes and coordinator of one run (cluster.cc), and its faults (cluster_faults.cc).
class ClusterRun {
 public:
  ClusterRun(const SimulationOptions& options, const SegmentTable& table, SimulatedStore& store,
             SimulationResult& result);
  void Run();

 private:
  using Nodes = std::vector<std::unique_ptr<SimulatedNode>>;

  // A process that the supervisor starts.
  struct Process {
    NodeKind kind = SERVER;
    uint32_t index = 0;             // in its name
    SimulatedNode* node = nullptr;  // null: not running, or the coordinator
    absl::Duration start_takes;     // for the next start
    FaultEvent next_kill = {};      // kill of its replacement; none if its `lasts` is infinite
    uint64_t starts = 0;
    absl::Time started_at;
    int quick_exits = 0;     // consecutive
    bool is_missed = false;  // lost, and its replacement is not up
  };

  Nodes& NodesOf(NodeKind kind) { return kind == SERVER ? servers_ : workers_; }
  void AddNode(NodeKind kind, bool spare = false);
  // Carries out the supervisor's decisions.
  void Supervise();
  void Start(const StartProcess& start);
  void BringUp(const StartProcess& start);
  void StartNode(Process& process, bool spare);
  // Checks the name that a node gets when it joins.
  void CheckName(const RegisterRequest& request, const absl::StatusOr<RegisterReply>& reply);
  void Interrupt();
  void Stop();
  void End(const EndJob& end);
  void OnExit(const std::string& name, ProcessExit how);
  // Name of the node's process; empty if that has exited.
  std::string NameOf(const SimulatedNode& node) const;
  // Ends the coordinator's process and lets the supervisor notice the end of the job.
  void EndProcesses();
  bool Answers() const { return coordinator_ != nullptr && !world_.coordinator_frozen; }
  void KillCoordinator(const FaultEvent& fault);
  // Sets the next start of a process that `fault` kills.
  static void SetNextStart(Process& process, FaultEvent fault);
  void FreezeCoordinator(const FaultEvent& fault);
  void ThawCoordinator();
  void RecoverState();
  void Drain(SimulatedNode& node, const FaultEvent& fault);
  void Befall(const FaultEvent& fault);
  SimulatedNode* Victim(NodeKind kind, const FaultEvent& fault);
  void Kill(SimulatedNode& node, const FaultEvent& fault);
  void Freeze(SimulatedNode& node, const FaultEvent& fault);
  void Cut(SimulatedNode& node, const FaultEvent& fault);
  void LoseKind(SimulatedNode& server, const FaultEvent& fault);
  // Cuts a link until the fault is over.
  void CutFor(const SimulatedWorld::Cut& cut, absl::Duration lasts);
  // Calls `end` when a fault that lasts is over.
  void AfterFault(absl::Duration lasts, std::function<void()> end);
  void Tick();
  void Collect();

  const SimulationOptions& options_;
  SimulationResult& result_;
  SimulatedTime time_;
  std::mt19937_64 random_;
  SimulatedNetwork network_;
  const CoordinatorOptions coordinator_options_;
  MemoryJournal journal_;
  std::unique_ptr<Coordinator> coordinator_;  // null while none runs
  SimulatedWorld world_;
  CoordinatorActions actions_;
  SupervisorCore supervisor_;
  std::map<std::string, Process> processes_;
  std::map<NodeKind, uint32_t> added_;  // processes of nodes
  std::optional<EndJob> end_;           // of the supervisor
  Nodes servers_;
  Nodes workers_;
  uint64_t incarnation_ = 1;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CLUSTER_RUN_H_
