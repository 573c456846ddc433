// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_BF16_REF_H_
#define TUG_KERNELS_REFERENCE_BF16_REF_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

// The conversions of bf16.h by their definition: the nearer of the two bf16 around x, or the even
// one on a tie.
inline float FloatFromBf16Ref(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

inline Bf16 Bf16FromFloatRef(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto towards_zero = static_cast<uint16_t>(bits >> 16);
  const Bf16 lower{towards_zero};
  if (std::isinf(x)) return lower;
  if (std::isnan(x)) return Bf16(towards_zero | 0x0040);  // quiet NaN, not infinity
  const auto upper = static_cast<Bf16>(towards_zero + 1);
  // If the next bf16 is infinity, rounding measures the distance to 2^128, the value in its place.
  const double next = std::isinf(FloatFromBf16Ref(upper))
                          ? std::copysign(std::ldexp(1.0, 128), static_cast<double>(x))
                          : static_cast<double>(FloatFromBf16Ref(upper));
  const double down = std::abs(x - static_cast<double>(FloatFromBf16Ref(lower)));
  const double up = std::abs(next - x);
  if (down != up) return down < up ? lower : upper;
  return towards_zero % 2 == 0 ? lower : upper;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_BF16_REF_H_
