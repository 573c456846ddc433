// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_SPARSE_SPARSE_VALUES_H_
#define TUG_COMPRESSION_SPARSE_SPARSE_VALUES_H_

// Some elements of a segment, unencoded: the encoding of top_k and dgc. Little-endian:
//
//   uint32 count | their indices (sorted_indices.h) | their values, FP32

#include <cstddef>
#include <cstdint>
#include <span>

#include "compression/codec.h"

namespace tug {

// Upper bound for `count` of `elements`, or fewer. REQUIRES: 1 <= elements <= 2^24, count <=
// elements. Pure.
size_t MaxSparseValuesBytes(size_t elements, size_t count);

// Writes the elements at `indices` to `out`, and returns the number of bytes. REQUIRES: ascending,
// each below elements.size().
size_t WriteSparseValues(std::span<const float> elements, std::span<const uint32_t> indices,
                         std::byte* out);

// See SegmentCodec::Decode.
bool DecodeSparseValues(std::span<const std::byte> encoded, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_SPARSE_SPARSE_VALUES_H_
