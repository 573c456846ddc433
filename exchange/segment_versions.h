#ifndef TUG_EXCHANGE_SEGMENT_VERSIONS_H_
#define TUG_EXCHANGE_SEGMENT_VERSIONS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "exchange/segment_table.h"
#include "scheduler/partitioner.h"

namespace tug {

// Which version of every segment came last to a worker: what its gradients are of. A pull and a
// push may be cut in different ways, so this is kept by segment. Not thread-safe.
class SegmentVersions {
 public:
  // REQUIRES: `table` outlives it.
  explicit SegmentVersions(const SegmentTable& table) : table_(table), versions_(table.size()) {}

  // `version`: kWhateverVersion where none was asked for, since the step does not touch it.
  void Set(const Partition& part, uint64_t version) {
    const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
    std::fill(first, first + part.segment_count, version);
  }
  // kWhateverVersion only if it is that of all segments.
  uint64_t Lowest(const Partition& part) const {
    const auto first = versions_.begin() + table_.id(part.block, part.first_segment);
    return *std::min_element(first, first + part.segment_count);
  }

 private:
  const SegmentTable& table_;
  std::vector<uint64_t> versions_;  // by segment id
};

}  // namespace tug

#endif  // TUG_EXCHANGE_SEGMENT_VERSIONS_H_
