// SPDX-License-Identifier: Apache-2.0
#include "blocks/partition_plan.h"

#include <utility>

#include "transport/transport.h"

namespace tug {

PartitionPlan::PartitionPlan(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                             const PullLanes& pull_lanes, uint64_t partition_bytes) {
  for (uint32_t b = 0; b < table.num_blocks(); ++b) {
    Block block;
    block.partitions = CutBlock(table, b, lane_of_segment, partition_bytes);
    for (uint32_t p = 0; p < block.partitions.size(); ++p) {
      const auto stands_in = pull_lanes.find(block.partitions[p].lane);
      block.pull_lanes.push_back(stands_in == pull_lanes.end() ? block.partitions[p].lane
                                                               : stands_in->second);
      block.of_segment.insert(block.of_segment.end(), block.partitions[p].segment_count, p);
    }
    blocks_.push_back(std::move(block));
  }
}

std::optional<uint32_t> PartitionPlan::FindRange(const WireHeader& header) const {
  if (header.block >= blocks_.size()) return std::nullopt;
  const Block& block = blocks_[header.block];
  if (header.first_segment >= block.of_segment.size()) return std::nullopt;
  const uint32_t index = block.of_segment[header.first_segment];
  const Partition& partition = block.partitions[index];
  if (partition.first_segment != header.first_segment ||
      partition.segment_count != header.segment_count) {
    return std::nullopt;
  }
  return index;
}

std::optional<uint32_t> PartitionPlan::Find(const WireHeader& header) const {
  const std::optional<uint32_t> index = FindRange(header);
  if (!index.has_value()) return std::nullopt;
  const Partition& partition = blocks_[header.block].partitions[*index];
  return LanePeer(partition.lane) == header.sender ? index : std::nullopt;
}

std::optional<uint32_t> PartitionPlan::FindPulled(const WireHeader& header) const {
  const std::optional<uint32_t> index = FindRange(header);
  if (!index.has_value()) return std::nullopt;
  return LanePeer(pull_lane(header.block, *index)) == header.sender ? index : Find(header);
}

}  // namespace tug
