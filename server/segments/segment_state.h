// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_SEGMENT_STATE_H_
#define TUG_SERVER_SEGMENTS_SEGMENT_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "server/sums/norm_entry.h"
#include "server/sums/sum_tree.h"
#include "server/sync/applied_clocks.h"
#include "server/sync/vector_clock.h"

namespace tug {

// A segment's clocks, and the sum in progress.
struct SegmentState {
  SegmentState(uint64_t start_version, uint32_t leaves, uint64_t elements, BufferPool& pool)
      : version(start_version), snapshot_version(start_version), sum(leaves, elements, pool) {}

  uint64_t version;           // updates; if pushes are summed, also the open clock
  uint64_t snapshot_version;  // step of the newest snapshot
  uint64_t tokens = 0;
  // BSP, BACKUP: factor on the complete sum; none: the update is skipped.
  std::optional<float> scale = std::nullopt;
  NormEntry summed_norm;  // norm of the complete sum
  NormEntry norm;         // norm of the newest update
  SumTree sum;            // SSP, ASP: of one push, while it is applied
  // SSP and ASP only.
  std::optional<VectorClock> next = std::nullopt;
  bool min_rose = false;  // by the current push
  bool final = false;     // all pushes that can come are applied
  // BACKUP only.
  std::optional<AppliedClocks> applied = std::nullopt;
};

// By segment id; null where another lane owns the segment.
using SegmentStates = std::vector<std::unique_ptr<SegmentState>>;

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_SEGMENT_STATE_H_
