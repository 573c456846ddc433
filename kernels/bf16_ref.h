#ifndef TUG_KERNELS_BF16_REF_H_
#define TUG_KERNELS_BF16_REF_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace tug::kernels {

// bf16.h as the words say it: of the two bf16 around x the nearer one, of two as near the even one.
inline float FloatFromBf16Ref(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }

inline uint16_t Bf16FromFloatRef(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto towards_zero = static_cast<uint16_t>(bits >> 16);
  if (std::isinf(x)) return towards_zero;
  if (std::isnan(x)) return towards_zero | 0x0040;  // quiet, and not an infinity
  const auto away_from_zero = static_cast<uint16_t>(towards_zero + 1);
  // Where the next one is an infinity, the distance is to the number it stands for: 2^128.
  const double next = std::isinf(FloatFromBf16Ref(away_from_zero))
                          ? std::copysign(std::ldexp(1.0, 128), static_cast<double>(x))
                          : static_cast<double>(FloatFromBf16Ref(away_from_zero));
  const double down = std::abs(x - static_cast<double>(FloatFromBf16Ref(towards_zero)));
  const double up = std::abs(next - x);
  if (down != up) return down < up ? towards_zero : away_from_zero;
  return towards_zero % 2 == 0 ? towards_zero : away_from_zero;
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_BF16_REF_H_
