#ifndef TUG_SERVER_HELD_SEGMENT_H_
#define TUG_SERVER_HELD_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/norm_entry.h"

namespace tug {

// All that a lane has of a segment, whether it owns it or keeps a copy: what goes from one to the
// other. Readable until the segment's next change.
struct HeldSegment {
  uint64_t version = 0;  // updates it has had
  std::span<const float> weights;
  std::span<const float> m;  // empty where the optimizer keeps none; v too
  std::span<const float> v;
  // With pulls of changes: what workers hold of this version (shadow.h). Otherwise empty.
  std::span<const float> shadow;
  // The weights of version - 1 as pulls get them (exchange/weights_payload.h). Empty: not
  // kept, since there is no such version, or nobody can need it any more.
  std::span<const std::byte> previous;
  // Where every push is an update: by virtual worker, the clock of the next push that it lacks.
  // Otherwise empty.
  std::span<const uint64_t> clocks;
  // Where gradients are clipped: of the update that made `version`.
  NormEntry norm;
};

}  // namespace tug

#endif  // TUG_SERVER_HELD_SEGMENT_H_
