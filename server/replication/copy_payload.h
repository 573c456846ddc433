// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_REPLICATION_COPY_PAYLOAD_H_
#define TUG_SERVER_REPLICATION_COPY_PAYLOAD_H_

// Payloads by which the owner of a segment maintains a replica: kUpdate and kCopy of proto/wire.h,
// little-endian. Written and read in place: parts with 64-bit numbers begin at multiples of 8
// bytes.
//
//   kUpdate   64 bytes (UpdateRecord), FP32 gradient [n]; without gradient: the update is skipped
//   kCopy     u64 clocks [by virtual worker, or none], NormEntry, FP32 weights [n], m [n or none],
//             v [n or none], shadow [n or none], weights of the previous version [as pulls get
//             them, blocks/weights_payload.h, or their shadow; or none]

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "optimizer/optimizer.h"
#include "proto/wire.h"
#include "server/segments/held_segment.h"
#include "server/sums/norm_entry.h"

namespace tug {

// Makes version + 1 of a segment, on any lane that has `version`.
struct SegmentUpdate {
  UpdateStep step;
  NormEntry norm;
  // Unscaled, of all elements. Empty: a skipped update, which makes the version with unchanged
  // weights.
  std::span<const float> gradient;

  bool skipped() const { return gradient.empty(); }
};

uint64_t UpdatePayloadBytes(const SegmentUpdate& update);
// REQUIRES: `out` has UpdatePayloadBytes.
void WriteUpdatePayload(const SegmentUpdate& update, std::span<std::byte> out);
// None: not a payload for a segment of `elements`. The gradient points into `payload`.
std::optional<SegmentUpdate> ReadUpdatePayload(std::span<const std::byte> payload,
                                               uint64_t elements);

// Shape of a job's segments.
struct CopyShape {
  uint32_t clocks = 0;  // virtual workers (SSP, ASP); else 0
  bool has_m = true;
  bool has_v = true;
  bool has_shadow = false;
  bool has_previous = true;  // the previous version, stored as `previous`
  Codec previous = Codec::kNone;
};

uint64_t CopyPayloadBytes(const HeldSegment& segment);
void WriteCopyPayload(const HeldSegment& segment, std::span<std::byte> out);
// Returns all except the version, which is in the header. None: the payload has another shape. The
// result points into `payload`.
std::optional<HeldSegment> ReadCopyPayload(std::span<const std::byte> payload, uint64_t elements,
                                           const CopyShape& shape);

}  // namespace tug

#endif  // TUG_SERVER_REPLICATION_COPY_PAYLOAD_H_
