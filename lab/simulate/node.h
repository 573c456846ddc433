// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_NODE_H_
#define TUG_LAB_SIMULATE_NODE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "blocks/segment_table.h"
#include "control/node_core.h"
#include "lab/simulate/cluster.h"
#include "lab/simulate/simulated_store.h"
#include "proto/control.pb.h"
#include "scheduler/schedule_points.h"
#include "transport/simulated/simulated_network.h"

namespace tug {

class SimulatedNode;

// State that nodes share. Outlives them.
struct SimulatedWorld {
  const SimulationOptions& options;
  const SegmentTable& table;
  SimulatedTime& time;
  SimulatedNetwork& network;
  SimulatedStore& store;
  std::mt19937_64& random;
  std::vector<uint64_t> clocks;  // by virtual worker: the next step whose pushes are not all sent
  uint64_t max_lead = 0;         // SimulationResult
  // Links that are cut, or that lose messages of one kind. Node 0 is the coordinator.
  struct Cut {
    uint32_t node = 0;
    std::optional<uint32_t> other = {};  // none: all nodes
    bool out = true;
    bool in = true;
    std::optional<MessageKind> kind = {};  // none: all messages
  };
  std::list<Cut> cuts = {};
  // While the coordinator is frozen, calls wait in its sockets.
  bool coordinator_frozen = false;
  std::vector<std::function<void()>> waiting_calls = {};
  // Called when the process of a node exits by itself.
  std::function<void(SimulatedNode&, ProcessExit)> on_exit = {};
  uint64_t fenced = 0;  // SimulationResult

  // Requests to the coordinator have no kind.
  bool IsCut(uint32_t from, uint32_t to, std::optional<MessageKind> kind = {}) const;
  // Adds a line to the log of the run, if there is one.
  void Say(const std::string& text) const;
};

// Control-plane side of a node: registers, then sends heartbeats until the job has ended.
class SimulatedNode {
 public:
  using RegisterCall = std::function<absl::StatusOr<RegisterReply>(const RegisterRequest&)>;
  using HeartbeatCall = std::function<absl::StatusOr<HeartbeatReply>(const HeartbeatRequest&)>;

  SimulatedNode(SimulatedWorld& world, NodeKind kind, uint64_t incarnation,
                RegisterCall do_register, HeartbeatCall heartbeat, bool spare = false);
  virtual ~SimulatedNode() = default;

  void Start();
  // The process is killed: it does nothing further, and messages in flight to it are lost.
  void Die();
  // The process is frozen: messages to it wait, and so do its pending events.
  void Freeze();
  void Thaw();
  // The process is told to end (SIGTERM): it asks the job to let it leave.
  void AskToLeave() { asks_to_leave_ = true; }
  bool dead() const { return dead_; }
  bool frozen() const { return frozen_; }
  bool ended() const { return ended_; }
  NodeKind kind() const { return kind_; }
  uint32_t node_id() const { return node_id_; }  // 0: not joined
  std::string Name() const;
  // Adds the results at the end.
  virtual void Collect(SimulationResult& result) = 0;

 protected:
  virtual std::vector<std::string> LaneEndpoints() const { return {}; }
  virtual void OnView(const View& view) = 0;
  virtual void OnDeath() = 0;
  // Adds the node's reports.
  virtual void Report(HeartbeatRequest& request) = 0;
  // `sent`: the acknowledged request.
  virtual void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) = 0;
  virtual void Tick() = 0;
  // Polls messages that arrived while it was frozen.
  virtual void LookForMail() = 0;

  // Runs `event` after `delay`, unless the node is dead; if it is frozen, once it continues.
  void Later(absl::Duration delay, std::function<void()> event);
  // Runs `event` after a random delay up to `max`, unless the node is dead.
  void After(absl::Duration max, std::function<void()> event);
  // The schedule to change to now by itself, if any.
  std::optional<SchedulePoint> RandomSchedule();

  SimulatedWorld& world_;
  const NodeKind kind_;
  uint32_t node_id_ = 0;
  std::string name_;  // empty: not joined
  uint64_t job_ = 0;
  JobConfig config_;
  BlockTable blocks_;

 private:
  void Register(bool joined);
  void Beat();
  void SendBeat(const HeartbeatRequest& request);
  void OnBeatReply(const HeartbeatRequest& sent, const absl::StatusOr<HeartbeatReply>& reply);
  // Exits after the end of the job. Results of the node stay for Collect.
  void End(ProcessExit how);
  void Exit(const std::string& why, ProcessExit how);

  const uint64_t incarnation_;
  const bool spare_;
  const RegisterCall register_;
  const HeartbeatCall heartbeat_;
  std::optional<JoinCore> join_;
  std::optional<BeatCore> core_;
  bool asks_to_leave_ = false;
  bool ended_ = false;
  bool dead_ = false;
  bool frozen_ = false;
  std::vector<std::function<void()>> held_;  // while it is frozen
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_NODE_H_
