// SPDX-License-Identifier: Apache-2.0
#include "blocks/segment_table.h"

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

// Elements of the block's tensors with and without weight decay. Checks that the tensor order keeps
// the two groups separate.
struct GroupSizes {
  uint64_t decay = 0;
  uint64_t no_decay = 0;
};

absl::StatusOr<GroupSizes> MeasureGroups(const BlockSpec& block) {
  GroupSizes sizes;
  for (const TensorSpec& tensor : block.tensors()) {
    const uint64_t elements = TensorElements(tensor);
    if (elements == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name(), " of block ", block.name(), " has no elements"));
    }
    if (tensor.weight_decay() && sizes.no_decay > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name(), " of block ", block.name(),
                       " has weight decay but follows one without; store decayed tensors first"));
    }
    (tensor.weight_decay() ? sizes.decay : sizes.no_decay) += elements;
  }
  return sizes;
}

}  // namespace

uint64_t TensorElements(const TensorSpec& tensor) {
  uint64_t elements = 1;
  for (uint64_t dimension : tensor.shape()) elements *= dimension;
  return elements;
}

absl::StatusOr<SegmentTable> SegmentTable::Create(const BlockTable& blocks,
                                                  uint64_t segment_elements) {
  if (blocks.blocks().empty()) return absl::InvalidArgumentError("no blocks declared");
  if (!std::has_single_bit(segment_elements)) {
    return absl::InvalidArgumentError(
        absl::StrCat("segments of ", segment_elements, " elements: must be a power of two"));
  }
  SegmentTable table;
  for (uint32_t b = 0; b < static_cast<uint32_t>(blocks.blocks_size()); ++b) {
    absl::StatusOr<GroupSizes> sizes = MeasureGroups(blocks.blocks(b));
    if (!sizes.ok()) return sizes.status();
    table.first_of_block_.push_back(table.size());
    uint32_t index = 0;
    uint64_t begin = 0;
    auto cut_group = [&](uint64_t elements, bool weight_decay) {
      for (const uint64_t group_end = begin + elements; begin < group_end;) {
        const uint64_t end = std::min(begin + segment_elements, group_end);
        table.segments_.push_back({b, index++, begin, end, weight_decay});
        begin = end;
      }
    };
    cut_group(sizes->decay, true);
    cut_group(sizes->no_decay, false);
    if (begin == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", blocks.blocks(b).name(), " has no tensors"));
    }
    table.block_elements_.push_back(begin);
  }
  table.first_of_block_.push_back(table.size());
  return table;
}

std::vector<std::string> BlockNames(const BlockTable& blocks) {
  std::vector<std::string> names;
  for (const BlockSpec& block : blocks.blocks()) names.push_back(block.name());
  return names;
}

}  // namespace tug
