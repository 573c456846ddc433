// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dropout_keeper.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/dropout-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

template <typename T>
void DropoutRange(const DropoutAddArgs<T>& a, const DropoutKeeper& keeper, int64_t sample,
                  int64_t begin, int64_t end) {
  DropoutAddRange(a, keeper, sample, begin, end);
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

namespace {

constexpr int64_t kElementsPerTask = 16384;  // a multiple of 64

}  // namespace

uint32_t DropoutThreshold(float p) {
  TUG_CHECK(p >= 0.0f && p < 1.0f) << "dropout " << p;
  return static_cast<uint32_t>(static_cast<double>(p) * 4294967296.0);
}

template <typename T>
void DropoutAdd(ThreadPool& pool, const DropoutAddArgs<T>& a) {
  TUG_CHECK_LE(a.elements_per_sample, kMaxDropoutElements);
  if (a.samples == 0 || a.elements_per_sample == 0) return;
  TUG_CHECK(a.bias == nullptr || a.elements_per_sample % a.width == 0);
  const DropoutKeeper keeper = MakeDropoutKeeper(a.key, a.p);
  const int64_t tasks_per_sample =
      (a.elements_per_sample + kElementsPerTask - 1) / kElementsPerTask;
  pool.ParallelFor(a.samples * tasks_per_sample, [&](int64_t task) {
    const int64_t begin = task % tasks_per_sample * kElementsPerTask;
    TUG_DISPATCH(DropoutRange, T)
    (a, keeper, task / tasks_per_sample, begin,
     std::min(a.elements_per_sample, begin + kElementsPerTask));
  });
}

template void DropoutAdd(ThreadPool&, const DropoutAddArgs<float>&);
template void DropoutAdd(ThreadPool&, const DropoutAddArgs<Bf16>&);

}  // namespace tug::kernels
#endif  // HWY_ONCE
