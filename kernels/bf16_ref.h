#ifndef TUG_KERNELS_BF16_REF_H_
#define TUG_KERNELS_BF16_REF_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/bf16.h"

namespace tug::kernels {

// bf16.h as the words say it: of the two bf16 around x the nearer one, of two as near the even one.
inline float FloatFromBf16Ref(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

inline Bf16 Bf16FromFloatRef(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto towards_zero = static_cast<uint16_t>(bits >> 16);
  const Bf16 lower{towards_zero};
  if (std::isinf(x)) return lower;
  if (std::isnan(x)) return Bf16(towards_zero | 0x0040);  // quiet, and not an infinity
  const auto upper = static_cast<Bf16>(towards_zero + 1);
  // Where the next one is an infinity, the distance is to the number it stands for: 2^128.
  const double next = std::isinf(FloatFromBf16Ref(upper))
                          ? std::copysign(std::ldexp(1.0, 128), static_cast<double>(x))
                          : static_cast<double>(FloatFromBf16Ref(upper));
  const double down = std::abs(x - static_cast<double>(FloatFromBf16Ref(lower)));
  const double up = std::abs(next - x);
  if (down != up) return down < up ? lower : upper;
  return towards_zero % 2 == 0 ? lower : upper;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_BF16_REF_H_
