// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_SEGMENT_VERSIONS_H_
#define TUG_BLOCKS_SEGMENT_VERSIONS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "blocks/partitioner.h"
#include "blocks/segment_table.h"

namespace tug {

// Version that a worker last received of each segment: the weights its gradients are computed from.
// Kept by segment, since pulls and pushes may be partitioned differently. Not thread-safe.
class SegmentVersions {
 public:
  // REQUIRES: `table` outlives this object.
  explicit SegmentVersions(const SegmentTable& table) : table_(table), versions_(table.size()) {}

  // `version`: kAnyWeightsVersion if the pull requested none, since the step does not touch it.
  void Set(const Partition& part, uint64_t version) {
    const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
    std::fill(first, first + part.segment_count, version);
  }
  // Lowest version of the segments; kAnyWeightsVersion only if all have it.
  uint64_t Lowest(const Partition& part) const {
    const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
    return *std::min_element(first, first + part.segment_count);
  }

 private:
  const SegmentTable& table_;
  std::vector<uint64_t> versions_;  // by segment id
};

}  // namespace tug

#endif  // TUG_BLOCKS_SEGMENT_VERSIONS_H_
