// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_DENSE_FP32_H_
#define TUG_COMPRESSION_DENSE_FP32_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Writes elements unencoded, plus `residual` (empty: nothing), which becomes 0. If that sum
// overflows, writes the elements alone. Elements that are not finite are detected where they are
// summed. Returns the number of bytes. REQUIRES: `encoding` has that many.
size_t EncodeFp32(std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> encoding);

// See SegmentCodec::Decode. REQUIRES: `encoding` has elements.size() FP32.
bool DecodeFp32(std::span<const std::byte> encoding, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_DENSE_FP32_H_
