// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_LANE_REPORT_H_
#define TUG_SERVER_LANE_REPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "metrics/server_metrics.h"
#include "server/lane_orders.h"
#include "server/shard/shard.h"
#include "server/shard/shard_activity.h"

namespace tug {

// A lane's progress in obeying its orders.
struct LaneProgress {
  uint32_t view = 0;      // served view; 0: none yet
  uint32_t schedule = 0;  // Schedule.number in effect
  // Shard::Clocks once all views before `clocks_of_view` are fenced off; empty: no fence yet.
  std::vector<uint64_t> clocks;
  uint32_t clocks_of_view = 0;
  // Newest placement (View.placement) in which all replicas of the lane's segments were in sync.
  uint32_t copied_placement = 0;

  // Whether the lane serves the newest view it was given.
  bool Serves(const LaneOrders::Wanted& wanted) const {
    return wanted.view > 0 && view >= wanted.view;
  }
};

// One lane's part of a server's heartbeat. Nothing is removed once reported: reports are keyed.
struct LaneReport {
  bool ready = false;  // LaneProgress::Serves
  LaneProgress progress;
  absl::Status failure;
  std::vector<CheckpointPart> parts;
  std::vector<ShardNotice> notices;
  // As of the lane's last tick. CPU, optimizer and serve time: with watch.metrics only.
  LaneFigures figures;
  ShardActivity activity = {};
  absl::Time active_since = absl::InfiniteFuture();  // of `activity`
  std::vector<std::string> algorithms = {};          // LaneReduction::algorithms

  // Adds a notice unless its key is known, or kMaxNotices are.
  void AddNotice(ShardNotice notice);
  static constexpr size_t kMaxNotices = 100;
};

// Merges the reports of a server's lanes into its heartbeat.
void AddReports(std::span<const LaneReport> lanes, absl::Time now, HeartbeatRequest& request);
// The first failure of a lane.
absl::Status FirstFailure(std::span<const LaneReport> lanes);
// Memory of all lanes that other processes may read.
uint64_t SharedBytes(std::span<const LaneReport> lanes);

}  // namespace tug

#endif  // TUG_SERVER_LANE_REPORT_H_
