#ifndef TUG_EXCHANGE_PARTITION_PLAN_H_
#define TUG_EXCHANGE_PARTITION_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exchange/segment_table.h"
#include "proto/wire.h"
#include "scheduler/partitioner.h"

namespace tug {

// The partitions of all blocks, and which one a message speaks of. Immutable, thread-safe.
class PartitionPlan {
 public:
  PartitionPlan(const SegmentTable& table, std::span<const uint32_t> lane_of_segment,
                uint64_t partition_bytes);

  uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }
  std::span<const Partition> of_block(uint32_t block) const { return blocks_[block].partitions; }
  uint64_t block_elements(uint32_t block) const { return blocks_[block].partitions.back().end; }

  // Index in of_block(header.block); none if the header, which comes from outside, is not about
  // exactly one of the partitions, or not from its lane. Constant time.
  std::optional<uint32_t> Find(const WireHeader& header) const;

 private:
  struct Block {
    std::vector<Partition> partitions;
    std::vector<uint32_t> of_segment;  // index of the partition, by segment
  };
  std::vector<Block> blocks_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_PARTITION_PLAN_H_
