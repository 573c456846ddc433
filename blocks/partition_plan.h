// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_PARTITION_PLAN_H_
#define TUG_BLOCKS_PARTITION_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blocks/partitioner.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "proto/wire.h"

namespace tug {

// Partitions of all blocks, and lookup of the partition of a message. Immutable, thread-safe.
class PartitionPlan {
 public:
  PartitionPlan(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                const PullLanes& pull_lanes, uint64_t partition_bytes);

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  std::span<const Partition> of_block(uint32_t block) const { return blocks_[block].partitions; }
  uint64_t block_elements(uint32_t block) const { return blocks_[block].partitions.back().end; }

  // Number of the lane to pull of_block(block)[partition] from: its owner, or the lane that acts
  // for it (PullLanes).
  uint32_t pull_lane(uint32_t block, uint32_t partition) const {
    return blocks_[block].pull_lanes[partition];
  }

  // Index in of_block(header.block); nothing if the header, which is untrusted, does not describe
  // exactly one partition, or was not sent by its lane. Constant time.
  std::optional<uint32_t> Find(const WireHeader& header) const;
  // Like Find, for pulled weights: the sender may also be the pull lane.
  std::optional<uint32_t> FindPulled(const WireHeader& header) const;

 private:
  struct Block {
    std::vector<Partition> partitions;
    std::vector<uint32_t> pull_lanes;  // by partition
    std::vector<uint32_t> of_segment;  // index of the partition, by segment
  };
  // Find without checking the sender.
  std::optional<uint32_t> FindRange(const WireHeader& header) const;

  std::vector<Block> blocks_;
};

}  // namespace tug

#endif  // TUG_BLOCKS_PARTITION_PLAN_H_
