#ifndef TUG_SERVER_PLAIN_KERNELS_H_
#define TUG_SERVER_PLAIN_KERNELS_H_

// Stand-ins for kernels that are declared and not yet there; goes when they come.

#include <bit>
#include <cmath>
#include <cstdint>

namespace tug::kernels {

inline bool PlainAllFinite(const float* x, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) finite = finite && std::isfinite(x[i]);
  return finite;
}

inline bool PlainSumAndCheck(const float* a, const float* b, float* sum, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
  return PlainAllFinite(b, n);
}

inline void FloatFromBf16(const uint16_t* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = std::bit_cast<float>(uint32_t{src[i]} << 16);
}

inline void Bf16FromFloat(const float* src, uint16_t* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(src[i]);
    dst[i] = std::isnan(src[i])
                 ? static_cast<uint16_t>((bits >> 16) | 0x40u)
                 : static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
  }
}

inline bool CopyAndCheckBf16(const uint16_t* src, float* dst, int64_t n) {
  FloatFromBf16(src, dst, n);
  return PlainAllFinite(dst, n);
}

inline bool AddAndCheckBf16(const uint16_t* src, float* acc, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const float x = std::bit_cast<float>(uint32_t{src[i]} << 16);
    finite = finite && std::isfinite(x);
    acc[i] += x;
  }
  return finite;
}

}  // namespace tug::kernels

#endif  // TUG_SERVER_PLAIN_KERNELS_H_
