// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SEGMENTS_HELD_SEGMENT_H_
#define TUG_SERVER_SEGMENTS_HELD_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/sums/norm_entry.h"

namespace tug {

// State of a segment on a lane that owns it or has a replica, as passed from one role to the other.
// Valid until the segment's next change.
struct HeldSegment {
  uint64_t version = 0;  // number of updates
  std::span<const float> weights;
  std::span<const float> m;  // m and v are empty if the optimizer keeps none
  std::span<const float> v;
  // With pulls of changes: the workers' weights at this version (shadow.h). Otherwise empty.
  std::span<const float> shadow;
  // Weights of version - 1 as pulls get them (blocks/weights_payload.h). Empty: there is no such
  // version, or it is no longer needed.
  std::span<const std::byte> previous;
  // SSP, ASP: next clock by virtual worker. Otherwise empty.
  std::span<const uint64_t> clocks;
  // With clipping: norm of the update that made `version`.
  NormEntry norm;
};

}  // namespace tug

#endif  // TUG_SERVER_SEGMENTS_HELD_SEGMENT_H_
