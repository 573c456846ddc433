#ifndef TUG_SERVER_SHARD_OPTIONS_H_
#define TUG_SERVER_SHARD_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "exchange/send_buffers.h"
#include "proto/job.pb.h"
#include "server/lane_memory.h"
#include "server/lane_reduction.h"
#include "server/replication.h"
#include "server/shadow.h"
#include "server/sync_policy.h"

namespace tug {

class View;

inline constexpr uint64_t kServerParkingBytes = uint64_t{32} << 20;

struct ShardOptions {
  uint32_t lane = 0;  // lane number, here and in lane_of_segment (exchange/view_lanes.h)
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  // View.placement: that of `lane_of_segment` and `copies`; at most `view`.
  uint32_t placement = 0;
  uint64_t start_version = 0;
  uint32_t virtual_workers = 1;
  OptimizerConfig optimizer;  // all fields filled
  SyncConfig sync;            // the same
  std::vector<uint32_t> lane_of_segment;
  // By segment, the lanes that keep a copy beside the owner; empty: there are none.
  Replication::CopyLanes copies;
  std::vector<std::string> block_names;
  uint64_t checkpoint_interval = 0;  // steps between snapshots; 0 = only the final one
  // train.steps: the snapshot of that step is the final one. 0: not known.
  uint64_t last_step = 0;
  absl::Duration resend_after = absl::Seconds(10);
  // Of sums that wait, beyond one for each segment: the lane's share of its server's
  // kServerParkingBytes.
  uint64_t parking_bytes = kServerParkingBytes;
  CommConfig::Format pull_format = CommConfig::FP32;  // what is kept ready; see weights_store.h
  double pull_density = 0.1;                          // comm.pull_density
  uint64_t seed = 0;                                  // of the job
  CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER;
  // comm.pull_credit_bytes, of which every lane that owns segments has an equal part.
  uint64_t pull_credit_bytes = uint64_t{32} << 20;
  // Sums may be of different virtual workers in different segments of a clock, other than by
  // sync.policy (fault.on_worker_loss SHRINK).
  bool sums_of_some = false;
  // With placement.host_weight_cache: lanes pull too, and this one keeps weights of these for the
  // workers on its host (CachedLanes, exchange/view_lanes.h).
  std::optional<std::vector<uint32_t>> cached_lanes = {};
  // With `exchange: ALL_REDUCE`: local sums are reduced among lanes. `lane_of_segment` is this lane
  // throughout then.
  std::optional<LaneReduction::Options> reduction = {};
  // Workers let go of what is received (proto/placement_mode.h): it is copied from their memory
  // before kReceived says so.
  bool senders_let_go = false;
  // Memory that copies of weights are sent from: the transport's, so that peers on this host can
  // read it.
  SendBuffers::NewBuffer new_buffer = [](size_t size_bytes) {
    return std::make_shared<AlignedBuffer>(size_bytes);
  };
  // Of weights and optimizer state; has a lane's counts, across its shards.
  std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  // For measurements of all but the optimizer: versions advance, no weights are computed.
  bool leave_out_update = false;
  TraceTrack* trace = nullptr;       // outlives the shard; may be null
  const TimeSource* time = nullptr;  // for ShardCounters::decode_seconds; as `trace`
  // For ShardCounters::optimizer_seconds and serve_seconds; as `trace`.
  const TimeSource* work_time = nullptr;
  // For tests: puts another policy in place of that of `sync`.
  std::function<std::unique_ptr<const SyncPolicy>(std::unique_ptr<const SyncPolicy>)>
      replace_policy_for_test = {};
};

// Lanes that own segments.
uint64_t OwningLanes(const ShardOptions& options);
ShadowMaker::Options ShadowOptionsOf(const ShardOptions& options);
// Between lanes that nothing stands between: what is not answered by then has met one that is not
// in this view yet, and one that refused for that is in it by then.
absl::Duration FirstResend(const ShardOptions& options);

// Everything that the job and a view determine about a lane's shard. The caller adds resources:
// memory, buffers, traces and clocks. Pure.
// REQUIRES: a configuration with its defaults; a view with lanes and blocks.
ShardOptions ShardOptionsOf(uint64_t job, const JobConfig& config, const View& view, uint32_t lane);

}  // namespace tug

#endif  // TUG_SERVER_SHARD_OPTIONS_H_
