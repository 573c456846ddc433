#ifndef TUG_EXCHANGE_WEIGHTS_PAYLOAD_H_
#define TUG_EXCHANGE_WEIGHTS_PAYLOAD_H_

// The formats that weights are pulled in (kNone, kBf16 and kInt8 of proto/wire.h; kChanges are in
// weight_changes.h), for who sends them and who receives them. A format encodes each segment by
// itself, to a size that is a function of its elements, whatever their values; segments lie one
// after the other. What a weight decodes to so depends neither on partitions nor on who has the
// segment.
//
//   kNone   FP32, as it is
//   kBf16   rounded to nearest even
//   kInt8   EncodeInt8Weights of compression/int8.h
//
// Weights that are not finite decode to such, in kInt8 their whole group to NaNs. REQUIRES, of
// functions that take a `codec`: it is one of these; sizes fit. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>

#include "exchange/segment_table.h"
#include "proto/job.pb.h"
#include "proto/wire.h"

namespace tug {

// What a job's weights are pulled as.
Codec WeightsCodecOf(CommConfig::Format pull_format);
// What a lane keeps all of the weights in for such pulls: with kChanges the shadow, FP32.
constexpr Codec StoredAs(Codec pull_codec) {
  return pull_codec == Codec::kChanges ? Codec::kNone : pull_codec;
}

// Of one segment.
size_t WeightsBytes(Codec codec, uint64_t elements);
void EncodeWeights(Codec codec, std::span<const float> weights, std::span<std::byte> out);

// Of segments [first, first + count), ids, of a block.
size_t WeightsBytes(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count);
void EncodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const float> weights, std::span<std::byte> out);
// Any bytes decode, to some numbers.
void DecodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const std::byte> payload, std::span<float> weights);

}  // namespace tug

#endif  // TUG_EXCHANGE_WEIGHTS_PAYLOAD_H_
