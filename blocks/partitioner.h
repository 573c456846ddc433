// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_PARTITIONER_H_
#define TUG_BLOCKS_PARTITIONER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "blocks/segment_table.h"

namespace tug {

// Consecutive segments of a block on one lane that are sent as one message.
struct Partition {
  uint32_t lane = 0;
  uint32_t block = 0;
  uint32_t first_segment = 0;  // within the block
  uint32_t segment_count = 0;
  uint64_t begin = 0;  // elements, within the block
  uint64_t end = 0;

  uint64_t bytes() const { return (end - begin) * sizeof(float); }
};

// Cuts a block into partitions of at most `partition_bytes` (but at least one segment), in segment
// order. `lane_of_segment` has the owner of every segment of the table. Pure.
std::vector<Partition> CutBlock(const SegmentTable& table, uint32_t block,
                                std::span<const uint32_t> lane_of_segment,
                                uint64_t partition_bytes);

}  // namespace tug

#endif  // TUG_BLOCKS_PARTITIONER_H_
