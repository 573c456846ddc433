// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard_options.h"

#include <algorithm>
#include <utility>

#include "blocks/segment_table.h"
#include "blocks/view_lanes.h"
#include "config/placement_mode.h"

namespace tug {
namespace {

// Maximum wait for a lane to start a collective: its worker may evaluate for long. The coordinator
// detects lost nodes.
constexpr absl::Duration kReductionPatience = absl::Hours(1);

LaneReduction::Options ReductionOptionsOf(uint64_t job, const JobConfig& config, const View& view,
                                          uint32_t lane) {
  LaneReduction::Options options;
  options.collective = config.collective();
  RankGroupOptions& group = options.group;
  group.peers = ReducingLanes(view);
  std::map<uint32_t, std::string> names = ServerNames(view);
  for (const WorkerAssignment& worker : view.workers()) {
    group.names.push_back(names[worker.server_node_id()]);
  }
  const auto self = std::find(group.peers.begin(), group.peers.end(), LanePeer(lane));
  group.rank = static_cast<uint32_t>(self - group.peers.begin());
  group.job = job;
  group.group = view.timeline();
  group.timeout = absl::Milliseconds(config.fault().failure_timeout_ms());
  group.patience = kReductionPatience;
  return options;
}

}  // namespace

uint64_t OwningLanes(const ShardOptions& options) {
  std::vector<uint32_t> lanes = options.lane_of_segment;
  std::sort(lanes.begin(), lanes.end());
  return static_cast<uint64_t>(std::unique(lanes.begin(), lanes.end()) - lanes.begin());
}

ShadowMaker::Options ShadowOptionsOf(const ShardOptions& options) {
  return {.density = options.pull_density,
          .seed = options.seed,
          .whole_every = options.checkpoint_interval};
}

absl::Duration FirstResend(const ShardOptions& options) {
  return std::min(absl::Milliseconds(200), options.resend_after);
}

ShardOptions ShardOptionsOf(uint64_t job, const JobConfig& config, const View& view,
                            uint32_t lane) {
  ShardOptions options;
  options.lane = lane;
  options.job = job;
  options.timeline = view.timeline();
  options.view = view.number();
  options.placement = view.placement();
  options.start_version = view.start_version();
  options.virtual_workers = config.cluster().virtual_workers();
  options.optimizer = config.optimizer();
  options.sync = config.sync();
  options.lane_of_segment = LaneNumberOfSegment(view);
  options.copies = LaneNumbersOfCopies(view);
  options.block_names = BlockNames(view.blocks());
  options.checkpoint_interval = config.checkpoint().interval();
  options.last_step = config.train().steps();
  options.resend_after = absl::Milliseconds(config.comm().resend_ms());
  options.parking_bytes = kServerParkingBytes / config.cluster().lanes_per_server();
  options.pull_format = config.comm().pull_format();
  options.pull_density = config.comm().pull_density();
  options.seed = config.seed();
  options.scheduler = config.comm().scheduler();
  options.pull_credit_bytes = config.comm().pull_credit_bytes();
  options.sums_of_some = config.fault().on_worker_loss() == FaultConfig::SHRINK;
  options.senders_let_go = PlacementModeOf(config).frees_gradients;
  if (config.placement().host_weight_cache()) options.cached_lanes = CachedLanes(view, lane);
  if (AllReduces(config)) {
    std::ranges::fill(options.lane_of_segment, lane);
    options.reduction = ReductionOptionsOf(job, config, view, lane);
  }
  return options;
}

}  // namespace tug
