// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_OPTIONS_H_
#define TUG_SERVER_SHARD_SHARD_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/memory/send_buffers.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "proto/job.pb.h"
#include "server/replication/replication.h"
#include "server/segments/lane_memory.h"
#include "server/segments/shadow.h"
#include "server/sums/lane_reduction.h"
#include "server/sync/sync_policy.h"

namespace tug {

class View;

inline constexpr uint64_t kServerParkingBytes = uint64_t{32} << 20;

struct ShardOptions {
  uint32_t lane = 0;  // lane number, as in lane_of_segment (blocks/view_lanes.h)
  uint64_t job = 0;
  uint32_t timeline = 0;
  uint32_t view = 0;
  // View.placement, in which `lane_of_segment` and `copies` are valid; at most `view`.
  uint32_t placement = 0;
  uint64_t start_version = 0;
  uint32_t virtual_workers = 1;
  OptimizerConfig optimizer;  // with defaults filled in
  SyncConfig sync;            // with defaults filled in
  std::vector<uint32_t> lane_of_segment;
  // By segment: lanes with a replica. Empty: no replicas.
  Replication::CopyLanes copies;
  std::vector<std::string> block_names;
  uint64_t checkpoint_interval = 0;  // steps between snapshots; 0: only the final one
  // train.steps, the step of the final snapshot. 0: unknown.
  uint64_t last_step = 0;
  absl::Duration resend_after = absl::Seconds(10);
  // Bound on partial sums beyond one per segment: the lane's share of kServerParkingBytes.
  uint64_t parking_bytes = kServerParkingBytes;
  CommConfig::Format pull_format = CommConfig::FP32;  // kept ready for pulls (weights_store.h)
  double pull_density = 0.1;                          // comm.pull_density
  uint64_t seed = 0;                                  // JobConfig.seed
  CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER;
  // comm.pull_credit_bytes, divided equally among lanes that own segments.
  uint64_t pull_credit_bytes = uint64_t{32} << 20;
  // fault.on_worker_loss SHRINK: segments of one clock may sum different sets of virtual workers.
  bool sums_of_some = false;
  // With placement.host_weight_cache: lanes pull too, and this lane caches the weights of these
  // lanes for the workers on its host (CachedLanes, blocks/view_lanes.h).
  std::optional<std::vector<uint32_t>> cached_lanes = {};
  // With `exchange: ALL_REDUCE`: lanes all-reduce their sums; every entry of `lane_of_segment` is
  // this lane.
  std::optional<LaneReduction::Options> reduction = {};
  // Workers free a gradient on kReceived (config/placement_mode.h), so the lane copies it first.
  bool senders_let_go = false;
  // Allocates the memory weights are sent from: the transport's, readable by peers on this host.
  SendBuffers::NewBuffer new_buffer = [](size_t size_bytes) {
    return std::make_shared<AlignedBuffer>(size_bytes);
  };
  // Memory of weights and optimizer state; its counts cover all shards of the lane.
  std::shared_ptr<LaneMemory> memory = LaneMemory::Create();
  // For benchmarks: versions advance, weights are not computed.
  bool leave_out_update = false;
  TraceTrack* trace = nullptr;       // may be null; outlives the shard
  const TimeSource* time = nullptr;  // for ShardCounters::decode_seconds; likewise
  // For ShardCounters::optimizer_seconds and serve_seconds; likewise.
  const TimeSource* work_time = nullptr;
  // For tests: replaces the policy chosen by `sync`.
  std::function<std::unique_ptr<const SyncPolicy>(std::unique_ptr<const SyncPolicy>)>
      replace_policy_for_test = {};
};

// Number of lanes that own segments.
uint64_t OwningLanes(const ShardOptions& options);
ShadowMaker::Options ShadowOptionsOf(const ShardOptions& options);
// Delay before the first resend to another lane. Lanes answer quickly, so a lane that has not
// answered by then was not in this view yet; one that refused for that reason is in it by then.
absl::Duration FirstResend(const ShardOptions& options);

// Everything that the job and a view determine about a lane's shard. The caller adds resources:
// memory, buffers, traces and clocks. Pure.
// REQUIRES: a configuration with its defaults; a view with lanes and blocks.
ShardOptions ShardOptionsOf(uint64_t job, const JobConfig& config, const View& view, uint32_t lane);

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_OPTIONS_H_
