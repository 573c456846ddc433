#ifndef TUG_SERVER_COPY_PAYLOAD_H_
#define TUG_SERVER_COPY_PAYLOAD_H_

// The payloads with which the owner of a segment keeps a copy of it: kUpdate and kCopy of
// proto/wire.h, little-endian. Written and read in place: their parts lie at multiples of 8 bytes,
// as far as they hold 64-bit numbers.
//
//   kUpdate   64 bytes (UpdateRecord), FP32 gradient [n]; without gradient: the update is skipped
//   kCopy     u64 clocks [by virtual worker, or none], NormEntry, FP32 weights [n], m [n or none],
//             v [n or none], shadow [n or none], weights of the version before [as pulls get them,
//             exchange/weights_payload.h, or their shadow; or none]

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "optimizer/optimizer.h"
#include "proto/wire.h"
#include "server/held_segment.h"
#include "server/norm_entry.h"

namespace tug {

// What makes version + 1 of a segment, whoever has `version`.
struct SegmentUpdate {
  UpdateStep step;
  NormEntry norm;
  // Of the segment's elements, unscaled; empty: the version is made, its weights are those before.
  std::span<const float> gradient;

  bool skipped() const { return gradient.empty(); }
};

uint64_t UpdatePayloadBytes(const SegmentUpdate& update);
// `out`: as many bytes.
void WriteUpdatePayload(const SegmentUpdate& update, std::span<std::byte> out);
// None if it is not of a segment of so many elements. The gradient stays where it is.
std::optional<SegmentUpdate> ReadUpdatePayload(std::span<const std::byte> payload,
                                               uint64_t elements);

// What is the same in all segments of a job.
struct CopyShape {
  uint32_t clocks = 0;  // virtual workers, where every push is an update; else 0
  bool has_m = true;
  bool has_v = true;
  bool has_shadow = false;
  bool has_previous = true;  // of the version before, in the format of pulls:
  Codec previous = Codec::kNone;
};

uint64_t CopyPayloadBytes(const HeldSegment& segment);
void WriteCopyPayload(const HeldSegment& segment, std::span<std::byte> out);
// Everything but the version, which is in the header. None if it is not of such a segment. Nothing
// is copied.
std::optional<HeldSegment> ReadCopyPayload(std::span<const std::byte> payload, uint64_t elements,
                                           const CopyShape& shape);

}  // namespace tug

#endif  // TUG_SERVER_COPY_PAYLOAD_H_
