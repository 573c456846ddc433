#include <bit>
#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

void Bf16FromFloat(const float* src, uint16_t* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(src[i]);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    dst[i] = static_cast<uint16_t>(nan ? (bits >> 16 | 0x40u)
                                       : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
}

void FloatFromBf16(const uint16_t* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = std::bit_cast<float>(uint32_t{src[i]} << 16);
}

}  // namespace tug::kernels
