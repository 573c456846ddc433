#ifndef TUG_SIMULATE_SERVER_NODE_H_
#define TUG_SIMULATE_SERVER_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/part_report.h"
#include "server/live_set.h"
#include "server/shard.h"
#include "simulate/node.h"
#include "simulate/planted_lane.h"
#include "simulate/run_watch.h"
#include "simulate/simulated_store.h"

namespace tug {

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

}  // namespace tug

#endif  // TUG_SIMULATE_SERVER_NODE_H_
