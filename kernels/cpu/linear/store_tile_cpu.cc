// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/store_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear/store_tile_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

template <bool kBias, bool kAccumulate, typename C>
HWY_INLINE void StoreRow(int64_t columns, const float* HWY_RESTRICT sums,
                         const float* HWY_RESTRICT bias, C* HWY_RESTRICT c) {
  const auto step = [&](int64_t i, int64_t left) HWY_ATTR {
    auto sum = LoadUpTo(sums + i, left);
    if constexpr (kBias) sum = hn::Add(sum, LoadUpTo(bias + i, left));
    if constexpr (kAccumulate) sum = hn::Add(sum, LoadUpTo(c + i, left));
    StoreUpTo(sum, c + i, left);
  };
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= columns; i += lanes) step(i, lanes);
  if (i < columns) step(i, columns - i);
}

template <typename C>
void StoreRows(int64_t rows, int64_t columns, const float* sums, const float* bias, bool accumulate,
               C* c, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, sums += columns, c += stride) {
    if (bias != nullptr && accumulate) {
      StoreRow<true, true>(columns, sums, bias, c);
    } else if (bias != nullptr) {
      StoreRow<true, false>(columns, sums, bias, c);
    } else if (accumulate) {
      StoreRow<false, true>(columns, sums, bias, c);
    } else {
      StoreRow<false, false>(columns, sums, bias, c);
    }
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

template <typename C>
void StoreTile(int64_t rows, int64_t columns, const float* sums, const float* bias, bool accumulate,
               C* c, int64_t stride) {
  TUG_DISPATCH(StoreRows, C)(rows, columns, sums, bias, accumulate, c, stride);
}

template void StoreTile(int64_t, int64_t, const float*, const float*, bool, float*, int64_t);
template void StoreTile(int64_t, int64_t, const float*, const float*, bool, Bf16*, int64_t);

}  // namespace tug::kernels
#endif  // HWY_ONCE
