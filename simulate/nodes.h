#ifndef TUG_SIMULATE_NODES_H_
#define TUG_SIMULATE_NODES_H_

// Server and worker nodes of a simulated cluster: the thin loops of server/ and worker/ in virtual
// time.

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/lease.h"
#include "checkpoint/part_report.h"
#include "exchange/control_board.h"
#include "exchange/exchange.h"
#include "exchange/segment_table.h"
#include "exchange/worker_place.h"
#include "proto/control.pb.h"
#include "scheduler/schedule_points.h"
#include "server/live_set.h"
#include "server/shard.h"
#include "simulate/cluster.h"
#include "simulate/planted_lane.h"
#include "simulate/run_watch.h"
#include "simulate/simulated_store.h"
#include "transport/simulated_network.h"
#include "worker/due_residuals.h"
#include "worker/step_machine.h"

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
  // A node has ended with an error, since the job has gone on without it.
  std::function<void(SimulatedNode&)> on_exit = {};
  // The same, since the job has let it go and waits for another one in its place.
  std::function<void(SimulatedNode&)> on_missed = {};

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
  void Register();
  void Beat();
  void SendBeat(const HeartbeatRequest& request);
  void OnBeatReply(const HeartbeatRequest& sent, const HeartbeatReply& reply);
  // The job goes on without it.
  void Exit(const std::string& why);

  const uint64_t incarnation_;
  const bool spare_;
  const RegisterCall register_;
  const HeartbeatCall heartbeat_;
  uint32_t known_view_ = 0;
  bool asks_to_leave_ = false;
  bool ended_ = false;
  bool dead_ = false;
  bool frozen_ = false;
  std::vector<std::function<void()>> held_;  // while it stands still
};

class SimulatedServer final : public SimulatedNode {
 public:
  using SimulatedNode::SimulatedNode;

  // Copies the weights of its segments into the blocks of `result`, and adds its counters.
  void Collect(SimulationResult& result) override;

 private:
  struct SimulatedLane {
    uint32_t number = 0;
    uint32_t index_in_view = 0;
    uint32_t view = 0;  // that it is in
    std::unique_ptr<SimulatedTransport> transport;
    PlantedLane planted;
    std::unique_ptr<Shard> shard;
    uint64_t final_version = 0;
    std::vector<uint64_t> final_clocks;
    struct Snapshot {
      size_t segments = 0;           // so far
      std::vector<uint64_t> clocks;  // lowest of them, where every push is an update
    };
    std::map<uint64_t, Snapshot> snapshots;  // by version
    PartReports parts;
    uint64_t most_held_bytes = 0;
    uint64_t most_cached_bytes = 0;
  };

  std::vector<std::string> LaneEndpoints() const override;
  void OnView(const View& view) override;
  void OnDeath() override { lanes_.clear(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;
  void Fence(uint32_t view);
  // Another placement of the timeline: lanes go on with what they have.
  void TakePlacement(const View& view);
  void Fill(SimulatedLane& lane, const View& view);
  void StartLane(SimulatedLane& lane, uint32_t index_on_server, const View& view);
  ShardOptions MakeShardOptions(SimulatedLane& lane, uint32_t index_on_server, const View& view);
  ShardSinks MakeSinks(SimulatedLane& lane);
  // Makes its endpoint.
  void Bind(SimulatedLane& lane, uint32_t index_on_server);
  void SetFinal(SimulatedLane& lane);
  void SetPullCredit(uint64_t bytes);
  void OnMessage(SimulatedLane& lane, Message message);
  void Deliver(SimulatedLane& lane, Message message);
  void Send(SimulatedLane& lane, Outgoing message);
  RunWatch::LaneState StateOf(const SimulatedLane& lane) const;
  void OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot);
  // Names what a lane writes of a checkpoint: other bytes, another name.
  std::string FileOf(const SimulatedLane& lane, uint64_t version) const;
  const SimulatedStore::Segment& StoredSegment(uint64_t version, uint32_t segment) const;

  std::vector<std::unique_ptr<SimulatedLane>> lanes_;
  uint32_t timeline_ = 0;
  uint32_t placement_ = 0;
  uint32_t copied_placement_ = 0;
  std::optional<LiveSet> live_;
  uint32_t fence_ = 0;  // clocks are told of this view; 0: of none
  std::vector<Notice> notices_;
  uint32_t schedule_ = 0;  // number of the coordinator's in effect
  uint64_t schedule_changes_ = 0;
};

class SimulatedWorker final : public SimulatedNode {
 public:
  using SimulatedNode::SimulatedNode;

  void Collect(SimulationResult& result) override;

 private:
  void OnView(const View& view) override;
  void OnDeath() override { transport_.reset(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;
  // All that is of the timeline before is gone.
  void Begin(const View& view, const WorkerPlace& place);
  // The virtual workers carried become those of the newest view, if that can be now.
  void TakePlace();
  // Runs the step machine as far as it goes.
  void Advance();
  void Compute();
  // What the coordinator wants, when a step begins, or something of its own.
  void MayChangeSchedule(const struct Compute& compute);
  void AddGradient(const struct Compute& compute);
  void Pull(const PullOrder& order);
  void Drop(uint32_t block);
  void Push(const struct Compute& compute, uint32_t block);
  void Report(const struct Compute& compute);
  void ReportSkipped();
  // ---- worker_residuals.cc ----
  // As TrainingLoop::SaveResiduals, but that writing takes no time.
  void SaveResiduals(uint32_t index, const std::vector<uint64_t>& due);
  void SaveResidualsAt(uint32_t index, uint64_t clock);
  void SaveLastResiduals();
  // As Training::ForgetWhatOthersTake.
  void ForgetWhatOthersTake(const View& view);
  // What the checkpoint that the timeline begins with has of those that go on from there.
  void RestoreResiduals(const View& view, const WorkerPlace& place);

  bool WaitsForCommit(const struct Compute& compute) const;
  bool WaitsForBuffer(const struct Compute& compute) const;
  absl::Duration MostTime(const struct Compute& compute) const;

  uint32_t timeline_ = 0;
  uint32_t timeline_view_ = 0;  // its first
  uint32_t view_ = 0;           // newest
  uint32_t taken_view_ = 0;     // whose place is taken
  WorkerPlace place_;           // of the newest
  std::vector<uint32_t> virtual_workers_;
  std::vector<std::vector<float>> weights_;          // by block
  std::vector<std::optional<BlockPulled>> arrived_;  // by block, until the machine waits for it
  std::vector<uint64_t> versions_;                   // of the weights, by block
  std::vector<std::vector<float>> evaluated_;        // by block
  std::vector<uint64_t> evaluated_versions_;         // by block
  std::vector<uint64_t> steps_taken_;                // by carried virtual worker
  uint64_t skipped_ = 0;
  // Gradients in the making, by carried virtual worker and block; handed over with the push.
  std::vector<std::vector<std::shared_ptr<AlignedBuffer>>> gradients_;
  std::set<std::pair<uint32_t, uint32_t>> open_pushes_;  // block, virtual worker: not committed
  // With placement.kind ZERO2 and ZERO3, of these: those whose gradient is still wanted.
  std::set<std::pair<uint32_t, uint32_t>> unreceived_pushes_;
  uint64_t most_unreceived_ = 0;
  std::unique_ptr<SimulatedTransport> transport_;
  PlantedWorker planted_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<StepMachine> machine_;
  double loss_ = 0;
  bool computing_ = false;
  bool pulling_ = false;
  bool ordered_ = false;         // orders_ are to be taken, between two computations
  ControlBoard::Orders orders_;  // the coordinator's newest
  uint32_t schedule_ = 0;        // number of the coordinator's in effect
  uint64_t schedule_changes_ = 0;
  absl::Time step_began_ = absl::UnixEpoch();
  std::vector<StepReport> steps_;
  std::optional<DueResiduals> due_residuals_;  // where checkpoints have them
  std::map<uint32_t, PartReports> parts_;      // by virtual worker
};

}  // namespace tug

#endif  // TUG_SIMULATE_NODES_H_
