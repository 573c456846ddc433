// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_FP16_REF_H_
#define TUG_KERNELS_REFERENCE_FP16_REF_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/fp16.h"

namespace tug::kernels {

// The conversions of fp16.h by their definition.
inline float FloatFromFp16Ref(Fp16 x) {
  const auto bits = static_cast<uint16_t>(x);
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return std::copysign(fraction == 0 ? std::numeric_limits<float>::infinity()
                                       : std::numeric_limits<float>::quiet_NaN(),
                         sign);
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// Returns the nearer of the two FP16 around x, or the even one on a tie. Bit patterns of magnitudes
// are ordered like the magnitudes, so adjacent patterns are adjacent numbers.
inline Fp16 Fp16FromFloatRef(float x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return Fp16(sign | 0x7E00);
  const double magnitude = std::abs(static_cast<double>(x));
  if (std::isinf(x)) return Fp16(sign | 0x7C00);
  uint16_t below = 0;  // largest FP16 that is not above the magnitude
  for (uint16_t bit = 0x4000; bit != 0; bit = static_cast<uint16_t>(bit >> 1)) {
    const auto tried = static_cast<uint16_t>(below | bit);
    if (tried < 0x7C00 && FloatFromFp16Ref(Fp16(tried)) <= magnitude) below = tried;
  }
  const auto above = static_cast<uint16_t>(below + 1);
  // If the next FP16 is infinity, rounding measures the distance to 2^16, the value in its place.
  const double next = above == 0x7C00 ? 65536.0 : FloatFromFp16Ref(Fp16(above));
  const double down = magnitude - FloatFromFp16Ref(Fp16(below));
  const double up = next - magnitude;
  const bool goes_up = up < down || (up == down && below % 2 == 1);
  return Fp16(sign | (goes_up ? above : below));
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_FP16_REF_H_
