#ifndef TUG_SERVER_PUSH_PAYLOAD_H_
#define TUG_SERVER_PUSH_PAYLOAD_H_

// What a push holds of each of its segments. It comes from outside, and may lie in its sender's
// memory, where it may change: what is read twice is copied when it is first looked at.

#include <cstdint>
#include <vector>

#include "compression/frames.h"
#include "exchange/segment_table.h"
#include "server/sum_tree.h"
#include "transport/transport.h"

namespace tug {

// One object takes many pushes, one after the other, and allocates nothing once it has had the
// largest. Not thread-safe: owned by one lane.
class PushPayload {
 public:
  // Takes a push in place of the one before. False if it is not of exactly the header's segments,
  // or of a codec that pushes do not have: it holds nothing then. REQUIRES: the table has them.
  bool Take(Message message, const SegmentTable& table);
  // Before its parts are asked for. Of runs (Codec::kRuns) makes the elements that they stand for,
  // zeros between them, in our own memory. False if they have changed since Take.
  bool Expand(const SegmentTable& table);
  // Nobody reads its bytes through it any more.
  void Release() { message_.payload = Lease(); }

  const WireHeader& header() const { return message_.header; }
  uint64_t size_bytes() const { return message_.payload.size_bytes(); }
  // Whether its parts lie in our own memory. REQUIRES: Expand.
  bool own() const { return message_.home == Home::kReceiver; }

  // That of one of its segments. REQUIRES: Expand.
  Contribution Part(uint32_t segment, const SegmentTable& table) const;

 private:
  Message message_;
  std::vector<Frame> frames_;  // of Codec::kFrames, by segment
};

}  // namespace tug

#endif  // TUG_SERVER_PUSH_PAYLOAD_H_
