#include "kernels/dropout.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dropout_keeper.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/dropout-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

template <typename T>
void DropoutRange(const DropoutKeeper& keeper, uint32_t sample_offset, int64_t begin, int64_t end,
                  int64_t width, const T* x, const float* bias, const T* residual, T* y) {
  DropoutAddRange(keeper, sample_offset, begin, end, width, x, bias, residual, y);
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
void BiasDropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, int64_t width,
                    const T* x, const float* bias, const T* residual, float p,
                    const DropoutKey& key, T* y) {
  TUG_CHECK_LE(elements_per_sample, kMaxDropoutElements);
  if (samples == 0 || elements_per_sample == 0) return;
  TUG_CHECK(bias == nullptr || elements_per_sample % width == 0);
  const DropoutKeeper keeper = MakeDropoutKeeper(key, p);
  const int64_t tasks_per_sample = (elements_per_sample + kElementsPerTask - 1) / kElementsPerTask;
  pool.ParallelFor(samples * tasks_per_sample, [&](int64_t task) {
    const int64_t sample = task / tasks_per_sample;
    const int64_t begin = task % tasks_per_sample * kElementsPerTask;
    const int64_t at = sample * elements_per_sample;
    TUG_DISPATCH(DropoutRange, T)
    (keeper, static_cast<uint32_t>(sample), begin,
     std::min(elements_per_sample, begin + kElementsPerTask), width, x + at, bias,
     residual == nullptr ? nullptr : residual + at, y + at);
  });
}

template <typename T>
void DropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, const T* x,
                const T* residual, float p, const DropoutKey& key, T* y) {
  BiasDropoutAdd<T>(pool, samples, elements_per_sample, elements_per_sample, x, nullptr, residual,
                    p, key, y);
}

template <typename T>
void DropoutBackward(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, const T* dy,
                     float p, const DropoutKey& key, T* dx) {
  DropoutAdd<T>(pool, samples, elements_per_sample, dy, nullptr, p, key, dx);
}

template void BiasDropoutAdd(ThreadPool&, int64_t, int64_t, int64_t, const float*, const float*,
                             const float*, float, const DropoutKey&, float*);
template void DropoutAdd(ThreadPool&, int64_t, int64_t, const float*, const float*, float,
                         const DropoutKey&, float*);
template void DropoutBackward(ThreadPool&, int64_t, int64_t, const float*, float, const DropoutKey&,
                              float*);
template void BiasDropoutAdd(ThreadPool&, int64_t, int64_t, int64_t, const Bf16*, const float*,
                             const Bf16*, float, const DropoutKey&, Bf16*);
template void DropoutAdd(ThreadPool&, int64_t, int64_t, const Bf16*, const Bf16*, float,
                         const DropoutKey&, Bf16*);
template void DropoutBackward(ThreadPool&, int64_t, int64_t, const Bf16*, float, const DropoutKey&,
                              Bf16*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
