// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_PUSHES_PUSH_PAYLOAD_H_
#define TUG_SERVER_PUSHES_PUSH_PAYLOAD_H_

// Parts of a push by segment. The payload comes from outside, and may lie in its sender's memory,
// where it may change: bytes that are read twice are copied at the first read.

#include <cstdint>
#include <vector>

#include "blocks/segment_table.h"
#include "compression/codecs/frames.h"
#include "server/sums/sum_tree.h"
#include "transport/transport.h"

namespace tug {

// Reused for one push after another; allocates nothing once it has held the largest. Not
// thread-safe: owned by one lane.
class PushPayload {
 public:
  // Replaces the current push. False, and nothing held, if it does not contain exactly the header's
  // segments, or has a codec that pushes do not use. REQUIRES: the table has the segments.
  bool Take(Message message, const SegmentTable& table);
  // Call before Part. Expands runs (Codec::kRuns) to all elements, zeros in between, in the lane's
  // own memory. False: they have changed since Take.
  bool Expand(const SegmentTable& table);
  // Releases the payload.
  void Release() { message_.payload = Lease(); }

  const WireHeader& header() const { return message_.header; }
  uint64_t size_bytes() const { return message_.payload.size_bytes(); }
  // Whether its parts lie in the lane's own memory. REQUIRES: Expand.
  bool own() const { return message_.home == Home::kReceiver; }

  // Part of one of its segments. REQUIRES: Expand.
  Contribution Part(uint32_t segment, const SegmentTable& table) const;

 private:
  Message message_;
  std::vector<Frame> frames_;  // with Codec::kFrames, by segment
};

}  // namespace tug

#endif  // TUG_SERVER_PUSHES_PUSH_PAYLOAD_H_
