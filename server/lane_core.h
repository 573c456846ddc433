// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_LANE_CORE_H_
#define TUG_SERVER_LANE_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "blocks/segment_table.h"
#include "server/lane_orders.h"
#include "server/lane_parts.h"
#include "server/lane_report.h"
#include "server/shard/shard.h"
#include "server/sync/live_set.h"
#include "transport/transport.h"

namespace tug {

// Binds the shard of one lane to views, placements and orders: a state machine without threads,
// sockets, files or a clock. LaneThread (lane.h) drives it in a server, SimulatedServer in virtual
// time.
//
//   1. Begin: a new timeline. The lane fills its segments (initial weights or checkpoint). If it
//      joins in the middle of the timeline, it waits until their owners fill its replicas.
//   2. Obey: a new placement gets a new shard, which inherits the segments of the previous one.
//      Then the view and its live set fence; then final version and schedule apply.
//   3. OnMessage, OnTick, Reduce.
//
// Not thread-safe.
class LaneCore {
 public:
  static constexpr absl::Duration kTick = absl::Milliseconds(50);

  // The lane's job. REQUIRES: `config` outlives the core.
  struct Job {
    uint64_t job = 0;
    uint32_t lane = 0;  // number
    const JobConfig& config;
  };
  struct Sinks {
    std::function<void(Outgoing)> send;
    std::function<absl::Status(const View&)> connect;  // to the lanes of the view
    // Whether a peer is on this host and can read the transport's buffers.
    std::function<bool(PeerId)> shares_memory;
    // Adds memory, buffers, traces and clocks to the options of a new shard.
    std::function<void(ShardOptions&)> equip;
    // Fills all held segments from the view's checkpoint or from train.init_from.
    std::function<absl::Status(const View&, Shard&)> fill;
    // Snapshots from now on belong to this place; unfinished ones of an earlier place are void.
    std::function<void(const LanePlace&)> place;
    // A segment that this lane writes into checkpoints.
    std::function<void(const SegmentSnapshot&)> snapshot;
    std::function<void(ShardNotice)> notice;
    std::function<void(const OrderRecord&)> record = {};  // see ShardSinks
    std::function<void()> wake = {};                      // the same
  };

  // REQUIRES: `table` outlives the core.
  LaneCore(const Job& job, const SegmentTable& table, Sinks sinks);

  // Starts a timeline with this view; Obey must follow before the first message. `joins`: in the
  // middle of the timeline. Errors: those of Sinks::connect and Sinks::fill; the lane must not
  // serve then.
  absl::Status Begin(const View& view, bool joins, absl::Time now);
  // Applies changed orders. Errors: those of Sinks::connect and Shard::InheritFrom; the lane has
  // failed.
  absl::Status Obey(const LaneOrders::Wanted& wanted, absl::Time now);

  void OnMessage(Message message, absl::Time now) { shard_->OnMessage(std::move(message), now); }
  // Call it every kTick.
  void OnTick(absl::Time now);
  // Processes a few messages of the reduction among lanes (`exchange: ALL_REDUCE`). False: nothing
  // to do until the next message. Call it at least every RankGroup::kTick if reduces().
  bool Reduce(absl::Time now);
  bool reduces() const { return shard_ != nullptr && shard_->reduction() != nullptr; }
  // Not OK: the reduction has failed; the lane must not serve.
  absl::Status status() const {
    return reduces() ? shard_->reduction()->status() : absl::OkStatus();
  }

  // REQUIRES: Begin has been called.
  Shard& shard() { return *shard_; }
  const Shard& shard() const { return *shard_; }
  bool begun() const { return shard_ != nullptr; }
  const LaneProgress& progress() const { return progress_; }
  const LanePlace& place() const { return place_; }
  const LiveSet& live() const { return live_; }
  // Peaks over all shards.
  uint64_t peak_sum_bytes() const;
  uint64_t peak_cached_bytes() const;

 private:
  ShardSinks MakeShardSinks();
  // Connects, and makes the shard of the view's placement.
  absl::StatusOr<std::unique_ptr<Shard>> MakeShard(const View& view);
  void SetPlace(const View& view, bool first);
  absl::Status Fill(const View& view);
  absl::Status AdoptPlacement(const View& view, absl::Time now);
  void SetOverNetwork(const View& view);
  void KeepPeaks();

  const Job job_;
  const SegmentTable& table_;
  const Sinks sinks_;
  std::unique_ptr<Shard> shard_;
  LanePlace place_;
  std::vector<uint32_t> writers_;  // lane that writes each segment into checkpoints
  LiveSet live_{0};
  uint32_t schedule_ = 0;  // applied to shard_
  absl::Time next_reduction_tick_ = absl::InfinitePast();
  uint64_t peak_sum_bytes_ = 0;     // of earlier shards
  uint64_t peak_cached_bytes_ = 0;  // the same
  LaneProgress progress_;
};

}  // namespace tug

#endif  // TUG_SERVER_LANE_CORE_H_
