// SPDX-License-Identifier: Apache-2.0
#include "blocks/partitioner.h"

namespace tug {

std::vector<Partition> CutBlock(const SegmentTable& table, uint32_t block,
                                std::span<const uint32_t> lane_of_segment,
                                uint64_t partition_bytes) {
  std::vector<Partition> partitions;
  for (uint32_t id = table.first_of_block(block); id < table.first_of_block(block + 1); ++id) {
    const Segment& segment = table.segment(id);
    const uint32_t lane = lane_of_segment[id];
    const bool extends = !partitions.empty() && partitions.back().lane == lane &&
                         partitions.back().bytes() + segment.bytes() <= partition_bytes;
    if (!extends) {
      partitions.push_back({lane, block, segment.index, 0, segment.begin, segment.begin});
    }
    ++partitions.back().segment_count;
    partitions.back().end = segment.end;
  }
  return partitions;
}

}  // namespace tug
