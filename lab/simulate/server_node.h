// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_SERVER_NODE_H_
#define TUG_LAB_SIMULATE_SERVER_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/simulate/checks/run_watch.h"
#include "lab/simulate/node.h"
#include "lab/simulate/planted_lane.h"
#include "lab/simulate/simulated_store.h"
#include "server/lane_core.h"
#include "server/lane_orders.h"
#include "server/lane_parts.h"
#include "server/lane_report.h"

namespace tug {

// Runs the lanes of a server (LaneCore) on the simulated network, with a simulated disk. Carries
// out orders at once.
class SimulatedServer final : public SimulatedNode {
 public:
  using SimulatedNode::SimulatedNode;

  // Copies the weights of its segments into the blocks of `result`, and adds its counters.
  void Collect(SimulationResult& result) override;

 private:
  struct SimulatedLane {
    SimulatedLane(const LaneCore::Job& job, uint32_t server_node_id, const SegmentTable& table,
                  PlantedBug bug, LaneCore::Sinks sinks)
        : number(job.lane),
          planted(bug),
          orders(job.config, server_node_id),
          core(job, table, std::move(sinks)) {}

    const uint32_t number;
    std::unique_ptr<SimulatedTransport> transport;
    PlantedLane planted;
    LaneOrders orders;
    LaneCore core;
    FillingParts<SimulatedStore::Segment> filling;
    LanePartReports parts;
    LaneReport report;  // failure and notices
    uint64_t peak_held_bytes = 0;
    uint64_t peak_cached_bytes = 0;
  };

  std::vector<std::string> LaneEndpoints() const override;
  void OnView(const View& view) override;
  void OnDeath() override { lanes_.clear(); }
  void LookForMail() override;
  void Report(HeartbeatRequest& request) override;
  void OnReply(const HeartbeatReply& reply, const HeartbeatRequest& sent) override;
  void Tick() override;
  void BindLanes();
  LaneCore::Sinks MakeSinks(size_t index);
  void Begin(SimulatedLane& lane, const View& view, bool joins);
  void Obey(SimulatedLane& lane);
  void NoteTakeover(SimulatedLane& lane);
  // Returns whether the lane serves.
  bool Check(SimulatedLane& lane, const absl::Status& status);
  void TickLanes();
  void PollLane(SimulatedLane& lane);
  void OnMessage(SimulatedLane& lane, Message message);
  void Deliver(SimulatedLane& lane, Message message);
  void Send(SimulatedLane& lane, Outgoing message);
  RunWatch::LaneState StateOf(const SimulatedLane& lane) const;
  void Equip(SimulatedLane& lane, ShardOptions& options);
  void Restore(SimulatedLane& lane, const View& view, Shard& shard);
  void OnSnapshot(SimulatedLane& lane, const SegmentSnapshot& snapshot);
  const SimulatedStore::Segment& StoredSegment(uint64_t version, uint32_t segment) const;

  std::vector<std::unique_ptr<SimulatedLane>> lanes_;
  uint64_t schedule_changes_ = 0;
};

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_SERVER_NODE_H_
