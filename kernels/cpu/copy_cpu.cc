// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy_cpu.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// 1. Up to a vector boundary of dst. 2. Four vectors per iteration, bypassing the caches. 3. The
// rest.
void CopyAround(const float* HWY_RESTRICT src, float* HWY_RESTRICT dst, int64_t n) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto vector_bytes = static_cast<uintptr_t>(lanes) * sizeof(float);
  const uintptr_t beyond = reinterpret_cast<uintptr_t>(dst) % vector_bytes;
  const auto head = static_cast<int64_t>((vector_bytes - beyond) % vector_bytes / sizeof(float));
  int64_t i = std::min(n, head);
  std::memcpy(dst, src, static_cast<size_t>(i) * sizeof(float));
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto x0 = hn::LoadU(d, src + i);
    const auto x1 = hn::LoadU(d, src + i + lanes);
    const auto x2 = hn::LoadU(d, src + i + 2 * lanes);
    const auto x3 = hn::LoadU(d, src + i + 3 * lanes);
    hn::Stream(x0, d, dst + i);
    hn::Stream(x1, d, dst + i + lanes);
    hn::Stream(x2, d, dst + i + 2 * lanes);
    hn::Stream(x3, d, dst + i + 3 * lanes);
  }
  hwy::FlushStream();
  std::memcpy(dst + i, src + i, static_cast<size_t>(n - i) * sizeof(float));
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(CopyAround);

namespace {

// Shorter copies are faster through the caches.
constexpr int64_t kLongCopy = 64 << 10;  // elements

}  // namespace

void CopyForLater(const float* src, float* dst, int64_t n) {
  if (n >= kLongCopy) return HWY_DYNAMIC_DISPATCH(CopyAround)(src, dst, n);
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
}

void CopyForAnotherCore(const float* src, float* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CopyAround)(src, dst, n);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
