// SPDX-License-Identifier: Apache-2.0
#include "prediction/replay_traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "blocks/codec_choice.h"
#include "blocks/job_blocks.h"
#include "blocks/weight_changes.h"
#include "blocks/weights_payload.h"
#include "config/placement_mode.h"
#include "coordinator/placement/placement.h"
#include "model/replay/replay_profile.h"

namespace tug {
namespace {

absl::Status CheckJob(const JobConfig& job) {
  if (job.compute() != JobConfig::REPLAY || !job.replay().has_resolved_profile()) {
    return absl::InvalidArgumentError(
        "only replays can be simulated: set compute to REPLAY and replay.profile to a profile");
  }
  RETURN_IF_ERROR(CheckReplayProfile(job.replay().resolved_profile()));
  if (job.sync().policy() != SyncConfig::BSP) {
    return absl::InvalidArgumentError("only sync.policy BSP can be simulated");
  }
  if (AllReduces(job)) {
    return absl::InvalidArgumentError("only exchange PUSH_PULL can be simulated");
  }
  if (job.comm().push_codec().has_auto_() || job.comm().pull_format() == CommConfig::PULL_AUTO) {
    return absl::InvalidArgumentError(
        "auto cannot be simulated, since it depends on times measured during a job: name a codec "
        "in comm.push_codec and a comm.pull_format");
  }
  return absl::OkStatus();
}

std::vector<uint64_t> PushBytes(const JobConfig& job, const BlockTable& blocks,
                                const SegmentTable& table) {
  const CodecChoice codecs(job.comm().push_codec(), BlockNames(blocks));
  std::vector<uint64_t> bytes;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    const SegmentCodec* const codec = codecs.AfterWarmup(segment);
    bytes.push_back(codec == nullptr ? segment.bytes()
                                     : codec->MaxEncodedBytes(segment.elements()));
  }
  return bytes;
}

std::vector<uint64_t> PullBytes(const JobConfig& job, const SegmentTable& table) {
  const Codec codec = WeightsCodecOf(job.comm().pull_format());
  const TopKCodec changes = ChangesCodec(job.comm().pull_density());
  std::vector<uint64_t> bytes;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    bytes.push_back(codec == Codec::kChanges ? changes.MaxEncodedBytes(segment.elements())
                                             : WeightsBytes(codec, segment.elements()));
  }
  return bytes;
}

// As AssignVirtualWorkers distributes virtual workers.
std::vector<WorkerKind> KindsOf(const ClusterConfig& cluster, const StragglerConfig& straggler) {
  const uint32_t each = cluster.virtual_workers() / cluster.workers();
  const uint32_t with_more = cluster.virtual_workers() % cluster.workers();
  std::vector<WorkerKind> kinds;
  if (with_more > 0) kinds.push_back({with_more, each + 1});
  kinds.push_back({cluster.workers() - with_more, each});
  if (straggler.slowdown() <= 1) return kinds;
  const bool has_more = straggler.virtual_worker() < with_more * (each + 1);
  const auto kind = has_more ? kinds.begin() : kinds.end() - 1;
  const WorkerKind slow{1, kind->virtual_workers, straggler.slowdown()};
  if (--kind->workers == 0) {
    *kind = slow;
  } else {
    kinds.insert(kind + 1, slow);
  }
  return kinds;
}

}  // namespace

uint64_t ReplayTraffic::BytesOf(const Partition& part, const std::vector<uint64_t>& bytes) const {
  const auto first = bytes.begin() + table.id(part.block, part.first_segment);
  return std::accumulate(first, first + part.segment_count, uint64_t{0});
}

double ReplayTraffic::compute_seconds() const {
  const double once = std::accumulate(forward_seconds.begin(), forward_seconds.end(), 0.0) +
                      std::accumulate(backward_seconds.begin(), backward_seconds.end(), 0.0);
  return once * kinds.front().virtual_workers;
}

absl::Status CheckLinkRate(double bytes_per_second) {
  if (bytes_per_second > 0 && std::isfinite(bytes_per_second)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a link of ", bytes_per_second,
                   " bytes per second cannot be simulated: give a finite rate above 0"));
}

absl::StatusOr<ReplayTraffic> ReplayTrafficOf(const JobConfig& job) {
  RETURN_IF_ERROR(CheckJob(job));
  const ReplayProfile& profile = job.replay().resolved_profile();
  ASSIGN_OR_RETURN(const BlockLayout layout, LayOut(ReplayLayout(profile), job));
  ASSIGN_OR_RETURN(SegmentTable table,
                   SegmentTable::Create(layout.blocks, job.comm().segment_elements()));
  ReplayTraffic traffic{.table = std::move(table)};
  const ClusterConfig& cluster = job.cluster();
  traffic.servers = cluster.servers();
  traffic.lanes_per_server = cluster.lanes_per_server();
  traffic.lane_of_segment = PlaceSegments(layout.segment_bytes, traffic.lanes());
  traffic.clip = job.optimizer().clip();
  traffic.kinds = KindsOf(cluster, job.straggler());
  for (const ReplayBlock& block : profile.blocks()) {
    traffic.forward_seconds.push_back(block.forward_ms() / 1000);
    traffic.backward_seconds.push_back(block.backward_ms() / 1000);
  }
  traffic.push_bytes = PushBytes(job, layout.blocks, traffic.table);
  traffic.pull_bytes = PullBytes(job, traffic.table);
  return traffic;
}

}  // namespace tug
