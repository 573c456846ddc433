#ifndef TUG_SERVER_SEGMENT_STATE_H_
#define TUG_SERVER_SEGMENT_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/sum_tree.h"

namespace tug {

// A segment's clock and the sum in the making.
struct SegmentState {
  SegmentState(uint64_t start_version, uint32_t leaves, uint64_t elements, BufferPool& pool)
      : version(start_version), snapshot_version(start_version), sum(leaves, elements, pool) {}

  uint64_t version;  // and the number of the open clock
  uint64_t snapshot_version;
  uint64_t tokens = 0;
  SumTree sum;
};

// By segment id; null where another lane owns the segment.
using SegmentStates = std::vector<std::unique_ptr<SegmentState>>;

}  // namespace tug

#endif  // TUG_SERVER_SEGMENT_STATE_H_
