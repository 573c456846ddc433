// SPDX-License-Identifier: Apache-2.0
#include "server/segments/memory.h"

#include <algorithm>
#include <vector>

#include "blocks/view_lanes.h"
#include "blocks/weight_changes.h"
#include "blocks/weights_payload.h"
#include "compression/codecs/frames.h"
#include "compression/dense/int8.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "optimizer/optimizer.h"
#include "scheduler/schedule_points.h"
#include "server/pulls/weight_cache.h"

namespace tug {
namespace {

constexpr uint64_t kWeights = 4;  // bytes per parameter, here and below
constexpr uint64_t kCopiesForPulls = 4;
constexpr uint64_t kSum = 4;
constexpr uint64_t kOtherBytes = uint64_t{64} << 20;
constexpr uint64_t kParkingBytes = uint64_t{32} << 20;  // kServerParkingBytes, shard_options.h

// Push credit of a worker: the job's, or the largest the tuner may choose.
uint64_t MostCredit(const CommConfig& comm, const SegmentTable& table) {
  uint64_t most = comm.credit_bytes();
  if (comm.scheduler() != CommConfig::AUTO) return most;
  for (const SchedulePoint& point : SchedulePoints(table))
    most = std::max(most, point.credit_bytes);
  return most;
}

// Updates sent to replicas (bounded by ShardOptions::parking_bytes), and received for replicas here
// from every other server. Pushes that wait for one of these updates have the same bound.
uint64_t UpdatesUnderWay(const JobConfig& config, uint64_t copied_here, uint64_t copied_there) {
  const uint64_t servers = config.cluster().servers() + config.cluster().spare_servers();
  uint64_t bytes = 0;
  if (copied_there > 0) bytes += 2 * kParkingBytes + kParkingBytes / 4;
  bytes += std::min(copied_here * kWeights, servers * kParkingBytes);
  return bytes;
}

// With pulls of changes, in addition to one copy for pulls: the other shadow, and the changes of
// both.
uint64_t ChangesBytes(const JobConfig& config, uint64_t parameters) {
  if (config.comm().pull_format() != CommConfig::CHANGES || parameters == 0) return 0;
  const TopKCodec codec = ChangesCodec(config.comm().pull_density());
  const uint64_t segment = config.comm().segment_elements();
  const uint64_t changes = (parameters / segment + 1) * codec.MaxEncodedBytes(segment);
  return kCopiesForPulls * parameters + 2 * changes;
}

// Buffers of lane_reduction.h, except trailers.
uint64_t ReductionBytes(const JobConfig& config, uint64_t parameters) {
  const auto format = config.collective().format();
  const bool narrow = format == CollectiveConfig::BF16 || format == CollectiveConfig::FP16;
  return parameters * (narrow ? 6 : 4);
}

// Whether every push is an update: weights are updated in place, and there are no sums.
bool AppliesPushes(const JobConfig& config) { return CountedClocks(config) > 0; }

// Bytes of a segment's weights: on its owner, and in a replica.
struct WeightsHeld {
  uint64_t owned = 0;
  uint64_t copied = 0;
};
WeightsHeld WeightsHeldOf(const JobConfig& config, uint64_t elements) {
  const uint64_t weights = kWeights * elements;
  if (AppliesPushes(config)) return {weights, weights};
  const Codec codec = WeightsCodecOf(config.comm().pull_format());
  if (codec == Codec::kNone) return {2 * weights, 2 * weights};
  const uint64_t encoded = WeightsBytes(StoredAs(codec), elements);
  if (codec != Codec::kChanges) return {weights + 2 * encoded, weights + encoded};
  const TopKCodec changed = ChangesCodec(config.comm().pull_density());
  const uint64_t changes = MaxFrameBytes(&changed, elements);
  return {weights + 2 * encoded + 2 * changes, weights + 2 * encoded};
}

// Bytes per element: sums of pushes, and their reduction. A gradient that is a whole sum is read in
// place if its worker is on this host.
uint64_t SumBytes(const JobConfig& config) {
  if (AppliesPushes(config)) return 0;
  const ClusterConfig& cluster = config.cluster();
  if (AllReduces(config)) {
    // A complete sum is released as it is reduced: only incomplete ones take memory.
    const uint64_t most = (cluster.virtual_workers() - 1) / cluster.workers() + 1;
    const bool waits = most > 2 || (most == 2 && !config.comm().shared_memory());
    return ReductionBytes(config, 1) + (waits ? kSum : 0);
  }
  const bool reads_in_place = cluster.virtual_workers() == 1 && HasServersBesideWorkers(config) &&
                              !PlacementModeOf(config).frees_gradients;
  return reads_in_place ? 0 : kSum;
}

// Memory of cached weights of lanes on other hosts.
template <typename IsOwn>
KeptBytes CachedBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                      IsOwn is_own) {
  if (!config.placement().host_weight_cache()) return {};
  std::vector<uint32_t> owners;
  for (int lane = 0; lane < view.lanes_size(); ++lane) {
    if (!is_own(static_cast<uint32_t>(lane))) continue;
    const std::vector<uint32_t> cached = CachedLanes(view, LaneNumber(view.lanes(lane)));
    owners.insert(owners.end(), cached.begin(), cached.end());
  }
  return KeptBytesOf(LaneNumberOfSegment(view), owners, WeightsCodecOf(config.comm().pull_format()),
                     table);
}

template <typename IsOwn>
HeldMemory PredictHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                       IsOwn is_own) {
  const auto optimizer = MakeLaneOptimizer(config.optimizer(), config.sync());
  const uint64_t state = (optimizer->keeps_m() ? 4 : 0) + (optimizer->keeps_v() ? 4 : 0);
  const uint64_t sums = SumBytes(config);
  HeldMemory held{.cached = CachedBytes(config, table, view, is_own).payloads};
  for (uint32_t id = 0; id < table.size(); ++id) {
    const uint64_t elements = table.segment(id).elements();
    const WeightsHeld weights = WeightsHeldOf(config, elements);
    const int index = static_cast<int>(id);
    if (AllReduces(config) || is_own(view.lane_of_segment(index))) {
      held.weights += weights.owned;
      held.optimizer += state * elements;
      held.sums += sums * elements;
    }
    for (const SegmentCopies& copies : view.copies()) {
      const uint32_t lane = copies.lane_of_segment(index);
      if (lane == 0 || !is_own(lane - 1)) continue;
      held.weights += weights.copied;
      held.optimizer += state * elements;
    }
  }
  return held;
}

}  // namespace

HeldMemory PredictLaneHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                           uint32_t lane) {
  return PredictHeld(config, table, view, [&](uint32_t other) { return other == lane; });
}

HeldMemory PredictServerHeld(const JobConfig& config, const SegmentTable& table, const View& view,
                             uint32_t server_node_id) {
  return PredictHeld(config, table, view, [&](uint32_t lane) {
    return view.lanes(static_cast<int>(lane)).server_node_id() == server_node_id;
  });
}

uint64_t CopiedAnswerBytes(CommConfig::Format pull_format, double pull_density, uint64_t elements) {
  if (pull_format == CommConfig::PULL_AUTO) return Int8Bytes(elements);
  if (pull_format != CommConfig::CHANGES) return 0;
  return ChangesCodec(pull_density).MaxEncodedBytes(elements);
}

ServerMemory PredictServerMemory(const JobConfig& config, const SegmentTable& table,
                                 const View& view, uint32_t server_node_id) {
  const bool has_all = AllReduces(config);
  const uint64_t workers = has_all ? 1 : config.cluster().workers();
  uint64_t parameters = 0;
  uint64_t written = 0;       // parameters written into checkpoints
  uint64_t copied_here = 0;   // replicated here for other servers
  uint64_t copied_there = 0;  // replicated by other servers
  uint64_t answers = 0;       // bytes of answers to one worker
  const auto is_own = [&](uint32_t lane) {
    return view.lanes(static_cast<int>(lane)).server_node_id() == server_node_id;
  };
  for (uint32_t id = 0; id < table.size(); ++id) {
    const uint64_t elements = table.segment(id).elements();
    const bool writes = is_own(view.lane_of_segment(static_cast<int>(id)));
    const bool own = has_all || writes;
    if (writes) written += elements;
    if (own) {
      parameters += elements;
      answers +=
          CopiedAnswerBytes(config.comm().pull_format(), config.comm().pull_density(), elements);
    }
    for (const SegmentCopies& copies : view.copies()) {
      const uint32_t lane = copies.lane_of_segment(static_cast<int>(id));
      if (lane == 0) continue;
      if (is_own(lane - 1)) copied_here += elements;
      if (own) copied_there += elements;
    }
  }
  const uint64_t arriving =
      std::min<uint64_t>(MostCredit(config.comm(), table) * workers,
                         uint64_t{config.cluster().virtual_workers()} * 4 * parameters);
  const auto optimizer = MakeLaneOptimizer(config.optimizer(), config.sync());
  const uint64_t state = kWeights + (optimizer->keeps_m() ? 4 : 0) + (optimizer->keeps_v() ? 4 : 0);
  const bool applies_pushes = AppliesPushes(config);
  const uint64_t shadow = config.comm().pull_format() == CommConfig::CHANGES ? 4 : 0;
  uint64_t beside = parameters * (kCopiesForPulls + kSum) + ChangesBytes(config, parameters) +
                    std::min<uint64_t>(config.comm().pull_credit_bytes(), answers) * workers;
  if (has_all) beside += ReductionBytes(config, parameters);
  const KeptBytes cached = CachedBytes(config, table, view, is_own);
  beside +=
      2 * cached.buffers + std::min<uint64_t>(config.comm().pull_credit_bytes(), cached.payloads);
  if (applies_pushes) {
    const uint64_t all = uint64_t{config.cluster().virtual_workers()} * kWeights * parameters;
    beside = std::min(config.comm().pull_credit_bytes() * config.cluster().workers(), all);
    if (config.sync().delay_compensation() > 0) beside += all;
  }
  const uint64_t copies = copied_here * (state + shadow + (applies_pushes ? 0 : kCopiesForPulls)) +
                          UpdatesUnderWay(config, copied_here, copied_there);
  return {.line_bytes = parameters * state + beside + arriving + copies + kOtherBytes,
          .checkpoint_bytes = written * state};
}

uint64_t PredictServerBytes(const JobConfig& config, const SegmentTable& table, const View& view,
                            uint32_t server_node_id) {
  const ServerMemory memory = PredictServerMemory(config, table, view, server_node_id);
  return memory.line_bytes + memory.checkpoint_bytes;
}

}  // namespace tug
