#ifndef TUG_COMPRESSION_FP32_H_
#define TUG_COMPRESSION_FP32_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Elements that are sent as they are. Writes them, plus what is in `residual` (empty: nothing),
// which then becomes 0; an overflow of that sum leaves the elements alone. Elements that are not
// finite are found where they are summed. Returns the bytes. REQUIRES: `encoding` has as many.
size_t EncodeFp32(std::span<const float> elements, std::span<float> residual,
                  std::span<std::byte> encoding);

// As SegmentCodec::Decode. REQUIRES: `encoding` has elements.size() FP32.
bool DecodeFp32(std::span<const std::byte> encoding, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_FP32_H_
