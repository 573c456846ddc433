#ifndef TUG_SIMULATE_NODE_H_
#define TUG_SIMULATE_NODE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exchange/segment_table.h"
#include "proto/control.pb.h"
#include "proto/node_core.h"
#include "scheduler/schedule_points.h"
#include "simulate/cluster.h"
#include "simulate/simulated_store.h"
#include "transport/simulated_network.h"

namespace tug {

class SimulatedNode;

// What nodes share. Outlives them.
struct SimulatedWorld {
  const SimulationOptions& options;
  const SegmentTable& table;
  SimulatedTime& time;
  SimulatedNetwork& network;
  SimulatedStore& store;
  std::mt19937_64& random;
  std::vector<uint64_t> clocks;  // by virtual worker: of the next step whose pushes are not all out
  uint64_t most_lead = 0;        // SimulationResult
  // Links that are cut at present, or lose messages of one kind. Node 0 is the coordinator.
  struct Cut {
    uint32_t node = 0;
    std::optional<uint32_t> other = {};  // none: everybody
    bool out = true;
    bool in = true;
    std::optional<MessageKind> kind = {};  // none: whatever is sent
  };
  std::list<Cut> cuts = {};
  // While the coordinator stands still, calls wait in its sockets.
  bool coordinator_frozen = false;
  std::vector<std::function<void()>> waiting_calls = {};
  // The process of a node has exited by itself.
  std::function<void(SimulatedNode&, ProcessExit)> on_exit = {};
  uint64_t fenced = 0;  // SimulationResult

  // What nodes ask of the coordinator has no kind.
  bool IsCut(uint32_t from, uint32_t to, std::optional<MessageKind> kind = {}) const;
  // For a trace of the run, if there is one.
  void Say(const std::string& text) const;
};

// The control plane's side of a node: registers, then beats until the job has ended.
class SimulatedNode {
 public:
  using RegisterCall = std::function<absl::StatusOr<RegisterReply>(const RegisterRequest&)>;
  using HeartbeatCall = std::function<absl::StatusOr<HeartbeatReply>(const HeartbeatRequest&)>;

  SimulatedNode(SimulatedWorld& world, NodeKind kind, uint64_t incarnation,
                RegisterCall do_register, HeartbeatCall heartbeat, bool spare = false);
  virtual ~SimulatedNode() = default;

  void Start();
  // The process is gone: nothing of it happens any more, and what is under way to it is lost.
  void Die();
  // The process stands still; what comes to it waits, and so does what it was about to do.
  void Freeze();
  void Thaw();
  // It is told to end (SIGTERM): it asks the job to let it go.
  void AskToLeave() { asks_to_leave_ = true; }
  bool dead() const { return dead_; }
  bool frozen() const { return frozen_; }
  bool ended() const { return ended_; }
  NodeKind kind() const { return kind_; }
  uint32_t node_id() const { return node_id_; }  // 0: it has not joined
  std::string Name() const;
  // Adds what there is at the end.
  virtual void Collect(SimulationResult& result) = 0;

 protected:
  virtual std::vector<std::string> LaneEndpoints() const { return {}; }
  virtual void OnView(const View& view) = 0;
  virtual void OnDeath() = 0;
  // Adds what there is to report.
  virtual void Report(HeartbeatRequest& request) = 0;
  // `sent`: what the reply answers has arrived.
  virtual void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) = 0;
  virtual void Tick() = 0;
  // Looks for mail that came while it stood still.
  virtual void LookForMail() = 0;

  // Runs `event` after `delay`, if the node lives then; if it stands still, when it goes on.
  void Later(absl::Duration delay, std::function<void()> event);
  // Runs `event` after a random delay up to `max`, if the node lives then.
  void After(absl::Duration max, std::function<void()> event);
  // Whether this node is to change by itself now, and to what.
  std::optional<SchedulePoint> RandomSchedule();

  SimulatedWorld& world_;
  const NodeKind kind_;
  uint32_t node_id_ = 0;
  uint64_t job_ = 0;
  JobConfig config_;
  BlockTable blocks_;

 private:
  void Register(bool joined);
  void Beat();
  void SendBeat(const HeartbeatRequest& request);
  void OnBeatReply(const HeartbeatRequest& sent, const absl::StatusOr<HeartbeatReply>& reply);
  // Exits after the job has ended. What the node computed stays for Collect.
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
  std::vector<std::function<void()>> held_;  // while it stands still
};

}  // namespace tug

#endif  // TUG_SIMULATE_NODE_H_
