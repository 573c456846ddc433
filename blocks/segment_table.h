// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_SEGMENT_TABLE_H_
#define TUG_BLOCKS_SEGMENT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/blocks.pb.h"

namespace tug {

// A fixed range of one block, inside one parameter group: the unit of ownership, optimizer state
// and clock.
struct Segment {
  uint32_t block = 0;
  uint32_t index = 0;  // within the block
  uint64_t begin = 0;  // elements, within the block
  uint64_t end = 0;
  bool weight_decay = false;

  uint64_t elements() const { return end - begin; }
  uint64_t bytes() const { return elements() * sizeof(float); }
};

// Cuts every block into segments. A pure function of the block table and the segment size, so it is
// the same on every node. Segments are numbered through all blocks in forward order ("segment id").
// All segments of a group are `segment_elements` long except the last, and start at multiples of
// that length from the group's start. Since the length is a power of two, a fixed binary tree over
// a group's elements is cut at its own nodes: see kernels/sum.h. Immutable after construction,
// thread-safe.
class SegmentTable {
 public:
  // Errors: INVALID_ARGUMENT for an empty table, an empty tensor, tensors of a block out of group
  // order, a segment length that is not a power of two.
  static absl::StatusOr<SegmentTable> Create(const BlockTable& blocks, uint64_t segment_elements);

  uint32_t size() const { return static_cast<uint32_t>(segments_.size()); }
  uint32_t num_blocks() const { return static_cast<uint32_t>(block_elements_.size()); }
  const Segment& segment(uint32_t id) const { return segments_[id]; }
  uint64_t block_elements(uint32_t block) const { return block_elements_[block]; }

  // Segment ids of a block: [first_of_block(b), first_of_block(b + 1)).
  uint32_t first_of_block(uint32_t block) const { return first_of_block_[block]; }
  uint32_t segments_in_block(uint32_t block) const {
    return first_of_block_[block + 1] - first_of_block_[block];
  }
  uint32_t id(uint32_t block, uint32_t index) const { return first_of_block_[block] + index; }

 private:
  std::vector<Segment> segments_;
  std::vector<uint64_t> block_elements_;
  std::vector<uint32_t> first_of_block_;  // with an extra entry after the last block
};

// Number of elements of a tensor.
uint64_t TensorElements(const TensorSpec& tensor);

// Names of the blocks, by block.
std::vector<std::string> BlockNames(const BlockTable& blocks);

}  // namespace tug

#endif  // TUG_BLOCKS_SEGMENT_TABLE_H_
