// SPDX-License-Identifier: Apache-2.0
#include "kernels/add.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/add_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/fp16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

template <typename T>
void AddRange(const T* a, const T* HWY_RESTRICT b, T* sum, int64_t n) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto x0 = hn::Add(LoadUpTo(a + i, lanes), LoadUpTo(b + i, lanes));
    const auto x1 = hn::Add(LoadUpTo(a + i + lanes, lanes), LoadUpTo(b + i + lanes, lanes));
    StoreUpTo(x0, sum + i, lanes);
    StoreUpTo(x1, sum + i + lanes, lanes);
  }
  for (; i < n; i += lanes) {
    StoreUpTo(hn::Add(LoadUpTo(a + i, n - i), LoadUpTo(b + i, n - i)), sum + i, n - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

void Add(const float* a, const float* b, float* sum, int64_t n) {
  TUG_DISPATCH(AddRange, float)(a, b, sum, n);
}

void Add(const Bf16* a, const Bf16* b, Bf16* sum, int64_t n) {
  TUG_DISPATCH(AddRange, Bf16)(a, b, sum, n);
}

void Add(const Fp16* a, const Fp16* b, Fp16* sum, int64_t n) {
  TUG_DISPATCH(AddRange, Fp16)(a, b, sum, n);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
