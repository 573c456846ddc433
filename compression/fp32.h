#ifndef TUG_COMPRESSION_FP32_H_
#define TUG_COMPRESSION_FP32_H_

#include <cstddef>
#include <span>

#include "compression/codec.h"

namespace tug {

// Elements that were sent as they are. As SegmentCodec::Decode, but true also says that what they
// were subtracted from is finite. REQUIRES: `encoding` has elements.size() FP32.
bool DecodeFp32(std::span<const std::byte> encoding, DecodeTo to, std::span<float> elements);

}  // namespace tug

#endif  // TUG_COMPRESSION_FP32_H_
