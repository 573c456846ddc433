#ifndef TUG_EXCHANGE_PARTITION_PLAN_H_
#define TUG_EXCHANGE_PARTITION_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "proto/wire.h"
#include "scheduler/partitioner.h"

namespace tug {

// The partitions of all blocks, and which one a message speaks of. Immutable, thread-safe.
class PartitionPlan {
 public:
  PartitionPlan(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                const PullLanes& pull_lanes, uint64_t partition_bytes);

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  std::span<const Partition> of_block(uint32_t block) const { return blocks_[block].partitions; }
  uint64_t block_elements(uint32_t block) const { return blocks_[block].partitions.back().end; }

  // Number of the lane that is asked for the weights of of_block(block)[partition]: its owner, or
  // who stands in for it.
  uint32_t pull_lane(uint32_t block, uint32_t partition) const {
    return blocks_[block].pull_lanes[partition];
  }

  // Index in of_block(header.block); none if the header, which comes from outside, is not about
  // exactly one of the partitions, or not from its lane. Constant time.
  std::optional<uint32_t> Find(const WireHeader& header) const;
  // The same of weights: they may be from the pull lane, too.
  std::optional<uint32_t> FindPulled(const WireHeader& header) const;

 private:
  struct Block {
    std::vector<Partition> partitions;
    std::vector<uint32_t> pull_lanes;  // of each
    std::vector<uint32_t> of_segment;  // index of the partition, by segment
  };
  // Whoever sent it.
  std::optional<uint32_t> FindRange(const WireHeader& header) const;

  std::vector<Block> blocks_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PARTITION_PLAN_H_
