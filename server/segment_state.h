#ifndef TUG_SERVER_SEGMENT_STATE_H_
#define TUG_SERVER_SEGMENT_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/applied_clocks.h"
#include "server/norm_entry.h"
#include "server/sum_tree.h"
#include "server/vector_clock.h"

namespace tug {

// A segment's clocks and the sum in the making.
struct SegmentState {
  SegmentState(uint64_t start_version, uint32_t leaves, uint64_t elements, BufferPool& pool)
      : version(start_version), snapshot_version(start_version), sum(leaves, elements, pool) {}

  uint64_t version;           // updates; where pushes are summed, the number of the open clock too
  uint64_t snapshot_version;  // step of the job of the newest snapshot
  uint64_t tokens = 0;
  // Where pushes are summed: what the complete sum is multiplied by; none: the update is skipped.
  std::optional<float> scale = std::nullopt;
  NormEntry summed_norm;  // of the complete sum
  NormEntry norm;         // of the newest update
  SumTree sum;            // of an update per push: of one, while it is applied
  // Update per push only.
  std::optional<VectorClock> next = std::nullopt;
  bool least_rose = false;  // by the push in hand
  bool final = false;       // all pushes that can come are in
  // Where clocks close without some pushes only.
  std::optional<AppliedClocks> applied = std::nullopt;
};

// By segment id; null where another lane owns the segment.
using SegmentStates = std::vector<std::unique_ptr<SegmentState>>;

}  // namespace tug

#endif  // TUG_SERVER_SEGMENT_STATE_H_
