// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_WEIGHTS_PAYLOAD_H_
#define TUG_BLOCKS_WEIGHTS_PAYLOAD_H_

// Encodes and decodes the formats of pulled weights (kNone, kBf16 and kInt8 of proto/wire.h;
// kChanges is in weight_changes.h). A format encodes each segment separately, to a size that
// depends only on its number of elements; segments are consecutive. So decoded weights depend
// neither on partitions nor on the owner of the segment.
//
//   kNone   FP32, unchanged
//   kBf16   rounded to nearest even
//   kInt8   EncodeInt8Weights of compression/dense/int8.h
//
// Weights that are not finite decode to non-finite ones, in kInt8 their whole group to NaNs.
// REQUIRES, for functions with a `codec`: it is one of these; sizes match. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>

#include "blocks/segment_table.h"
#include "proto/job.pb.h"
#include "proto/wire.h"

namespace tug {

// Codec in which a job's weights are pulled.
Codec WeightsCodecOf(CommConfig::Format pull_format);
// Format in which a lane stores the weights for such pulls: with kChanges the shadow, FP32.
constexpr Codec StoredAs(Codec pull_codec) {
  return pull_codec == Codec::kChanges ? Codec::kNone : pull_codec;
}

// For one segment.
size_t WeightsBytes(Codec codec, uint64_t elements);
void EncodeWeights(Codec codec, std::span<const float> weights, std::span<std::byte> out);

// For segments [first, first + count), ids, of one block.
size_t WeightsBytes(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count);
void EncodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const float> weights, std::span<std::byte> out);
// Never fails: any bytes decode to some numbers.
void DecodeWeights(Codec codec, const SegmentTable& table, uint32_t first, uint32_t count,
                   std::span<const std::byte> payload, std::span<float> weights);

}  // namespace tug

#endif  // TUG_BLOCKS_WEIGHTS_PAYLOAD_H_
