#include "exchange/partition_plan.h"

#include <utility>

#include "transport/transport.h"

namespace tug {

PartitionPlan::PartitionPlan(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                             uint64_t partition_bytes) {
  for (uint32_t b = 0; b < table.num_blocks(); ++b) {
    Block block;
    block.partitions = CutBlock(table, b, lane_of_segment, partition_bytes);
    for (uint32_t p = 0; p < block.partitions.size(); ++p) {
      block.of_segment.insert(block.of_segment.end(), block.partitions[p].segment_count, p);
    }
    blocks_.push_back(std::move(block));
  }
}

std::optional<uint32_t> PartitionPlan::Find(const WireHeader& header) const {
  if (header.block >= blocks_.size()) return std::nullopt;
  const Block& block = blocks_[header.block];
  if (header.first_segment >= block.of_segment.size()) return std::nullopt;
  const uint32_t index = block.of_segment[header.first_segment];
  const Partition& partition = block.partitions[index];
  if (partition.first_segment != header.first_segment ||
      partition.segment_count != header.segment_count ||
      LanePeer(partition.lane) != header.sender) {
    return std::nullopt;
  }
  return index;
}

}  // namespace tug
