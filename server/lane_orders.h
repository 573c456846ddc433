// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_LANE_ORDERS_H_
#define TUG_SERVER_LANE_ORDERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/control.pb.h"
#include "server/sync/live_set.h"

namespace tug {

class JobConfig;

// The coordinator's orders to one lane, merged from views and heartbeat replies until the lane
// obeys them (LaneCore::Obey). Call OnView before OnReply for the same heartbeat reply. Not
// thread-safe.
class LaneOrders {
 public:
  // Current orders. Later values replace earlier ones.
  struct Wanted {
    uint32_t view = 0;  // newest complete view; 0: none, the lane joins in the middle of a timeline
    uint32_t fence = 0;  // HeartbeatReply.next_view: fences off all views before this number
    std::optional<LiveSet> live;    // of `view`; all virtual workers while `fence` is newer
    std::optional<View> placement;  // newest placement after the one that the lane began with
    uint64_t final_version = 0;     // HeartbeatReply.final_version
    std::vector<uint64_t> final_clocks;
    uint32_t schedule = 0;  // Schedule.number
    uint64_t pull_credit_bytes = 0;
  };

  // REQUIRES: `config` outlives the orders.
  LaneOrders(const JobConfig& config, uint32_t server_node_id)
      : config_(config), server_node_id_(server_node_id) {}

  // Whether the lane must begin again with this view: its first, or the first of a new timeline.
  bool Begins(const View& view) const { return view.timeline() != timeline_; }
  // Whether the lane must begin with this next view, in the middle of its timeline.
  bool Joins(const View& next) const { return Places(next) && Begins(next); }

  void OnView(const View& view);
  // Returns whether `wanted` changed.
  bool OnReply(const HeartbeatReply& reply);

  const Wanted& wanted() const { return wanted_; }

 private:
  bool Places(const View& view) const {
    return view.lanes_size() > 0 && view.placement() > placement_;
  }
  void OnNextView(const View& next);

  const JobConfig& config_;
  const uint32_t server_node_id_;
  uint32_t timeline_ = 0;   // 0: the lane has not begun
  uint32_t placement_ = 0;  // newest ordered placement
  Wanted wanted_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_ORDERS_H_
