// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATED_JOB_OPTIONS_H_
#define TUG_SERVER_REPLICATED_JOB_OPTIONS_H_

// Options, placements and shards of the job in replicated_job_test_support.h.

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "blocks/view_lanes.h"
#include "config/sync_mode.h"
#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {

struct ReplicatedJobOptions {
  static constexpr uint64_t kElements = 1024;  // per segment
  static constexpr uint32_t kBlocks = 2;
  static constexpr uint32_t kSegmentsOfBlock = 3;
  static constexpr uint32_t kSegments = kBlocks * kSegmentsOfBlock;
  static constexpr uint32_t kVirtualWorkers = 3;

  SyncConfig::Policy policy = SyncConfig::BSP;
  OptimizerConfig::Clip clip = OptimizerConfig::OFF;
  CommConfig::Format pull_format = CommConfig::FP32;
  bool frames = false;  // pushes encode half of their segments (Codec::kFrames)
  uint32_t lanes = 3;
  bool copies = true;
  bool rough = true;   // the network loses, repeats and reorders messages
  bool faults = true;  // lanes are lost and join, segments move, workers are lost
  uint64_t parking_bytes = uint64_t{1} << 20;
  double delay_compensation = 0;
  // placement.host_weight_cache: lanes alternate between two hosts, workers between this many of
  // them. 0: off.
  uint32_t cached_hosts = 0;
  uint32_t seed = 1;
};

// Owner and replica of each segment.
struct ReplicatedJobPlacement {
  static constexpr uint32_t kNobody = 0;

  uint32_t view = 0;
  uint32_t placement = 0;
  std::vector<uint32_t> owner;  // by segment
  std::vector<uint32_t> copy;   // lane with the replica, or kNobody
};

inline SegmentTable ReplicatedJobTable() {
  BlockTable blocks;
  for (uint32_t b = 0; b < ReplicatedJobOptions::kBlocks; ++b) {
    TensorSpec* const tensor = blocks.add_blocks()->add_tensors();
    tensor->add_shape(ReplicatedJobOptions::kSegmentsOfBlock * ReplicatedJobOptions::kElements);
    tensor->set_weight_decay(b == 0);
  }
  return *SegmentTable::Create(blocks, ReplicatedJobOptions::kElements);
}

// Sums: AdamW. Updates per push: SGD with step size 1, so that applied pushes can be counted.
inline OptimizerConfig ReplicatedJobOptimizer(const ReplicatedJobOptions& job) {
  OptimizerConfig optimizer;
  optimizer.set_schedule(OptimizerConfig::CONSTANT);
  optimizer.set_clip(job.clip);
  optimizer.set_clip_norm(5);
  if (SyncModeOf(job.policy).update_per_push) {
    optimizer.set_algorithm(OptimizerConfig::SGD);
    optimizer.set_learning_rate(1);
    return optimizer;
  }
  optimizer.set_algorithm(OptimizerConfig::ADAMW);
  optimizer.set_learning_rate(0.01);
  optimizer.mutable_adamw()->set_weight_decay(0.1);
  optimizer.mutable_adamw()->set_beta1(0.9);
  optimizer.mutable_adamw()->set_beta2(0.99);
  optimizer.mutable_adamw()->set_epsilon(1e-8);
  return optimizer;
}

// PullLanesOn host `host` (1 or 2). Only owners are in the view.
inline PullLanes ReplicatedJobPullLanes(const std::vector<uint32_t>& owner, uint64_t host) {
  View view;
  for (const uint32_t number : std::set<uint32_t>(owner.begin(), owner.end())) {
    Lane& lane = *view.add_lanes();
    lane.set_server_node_id(number / kMaxLanesPerServer);
    lane.set_index_on_server(number % kMaxLanesPerServer);
    lane.set_host_id(1 + number % 2);
  }
  return PullLanesOn(view, host);
}

// Payload of a push of segments from `first` on; sets the header's codec and payload_bytes. The
// codec of a segment does not depend on the partition.
inline Lease ReplicatedJobPushPayload(const ReplicatedJobOptions& job, uint32_t first,
                                      const std::vector<float>& gradient, WireHeader& header) {
  const uint8_t even = job.frames ? kBf16Frame : kFp32Frame;
  const std::vector<uint8_t> codecs = {first % 2 == 0 ? even : kFp32Frame,
                                       first % 2 == 0 ? kFp32Frame : even};
  header.codec = job.frames ? Codec::kFrames : Codec::kNone;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(gradient));
  Lease payload =
      LeaseOf(job.frames ? EncodeFrames(gradient, ReplicatedJobOptions::kElements, codecs)
                         : std::vector<std::byte>(bytes.begin(), bytes.end()));
  header.payload_bytes = payload.size_bytes();
  return payload;
}

inline ShardOptions ReplicatedJobShardOptions(const ReplicatedJobOptions& job,
                                              const ReplicatedJobPlacement& placement,
                                              uint32_t lane) {
  ShardOptions options;
  options.lane = lane;
  options.job = 9;
  options.timeline = 1;
  options.view = placement.view;
  options.placement = placement.placement;
  options.virtual_workers = ReplicatedJobOptions::kVirtualWorkers;
  options.optimizer = ReplicatedJobOptimizer(job);
  options.sync.set_policy(job.policy);
  options.sync.set_staleness(2);
  options.sync.set_staleness_scaling(SyncConfig::NONE);
  options.sync.set_delay_compensation(job.delay_compensation);
  options.lane_of_segment = placement.owner;
  for (const uint32_t copy : placement.copy) {
    if (!job.copies) break;
    options.copies.push_back(copy == ReplicatedJobPlacement::kNobody ? std::vector<uint32_t>()
                                                                     : std::vector<uint32_t>{copy});
  }
  if (job.cached_hosts > 0) {
    options.cached_lanes.emplace();
    for (const auto& [owner, pulled_from] : ReplicatedJobPullLanes(placement.owner, 1 + lane % 2)) {
      if (pulled_from == lane) options.cached_lanes->push_back(owner);
    }
  }
  options.block_names = {"a", "b"};
  options.resend_after = absl::Seconds(2);
  options.parking_bytes = job.parking_bytes;
  options.pull_format = job.pull_format;
  return options;
}

}  // namespace tug

#endif  // TUG_SERVER_REPLICATED_JOB_OPTIONS_H_
