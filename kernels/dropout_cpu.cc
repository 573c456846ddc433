#include <algorithm>

#include "base/check.h"
#include "kernels/dropout.h"
#include "kernels/dropout_keeper.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/dropout-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// The bias of 64 elements from `column` on: in place, or copied to `wrapped` where a row ends
// between.
HWY_INLINE const float* BiasOfBlock(const float* bias, int64_t width, int64_t column, int64_t count,
                                    float* wrapped) {
  if (column + count <= width) return bias + column;
  for (int64_t i = 0; i < count; ++i) {
    wrapped[i] = bias[column];
    if (++column == width) column = 0;
  }
  return wrapped;
}

// y = residual + factor (x + bias) for elements [begin, end) of one sample; begin is a multiple
// of 64. With a threshold of 0 every element is kept and no random number is drawn. bias, residual:
// nullptr for none.
void DropoutRange(const DropoutKeeper& keeper, uint32_t sample_offset, int64_t begin, int64_t end,
                  int64_t width, const float* x, const float* bias, const float* residual,
                  float* y) {
  HWY_ALIGN float factor[64];
  HWY_ALIGN float wrapped[64];
  const int64_t lanes = FloatLanes();
  const bool drop = keeper.threshold != 0;
  for (int64_t start = begin; start < end; start += 64) {
    const int64_t count = std::min<int64_t>(64, end - start);
    if (drop) DropoutFactors(keeper, sample_offset, static_cast<uint32_t>(start / 64), factor);
    const float* bias_block =
        bias == nullptr ? nullptr : BiasOfBlock(bias, width, start % width, count, wrapped);
    for (int64_t i = 0; i < count; i += lanes) {
      const int64_t left = count - i;
      auto v = LoadUpTo(x + start + i, left);
      if (bias != nullptr) v = hn::Add(v, LoadUpTo(bias_block + i, left));
      if (drop) v = ApplyFactor(v, LoadUpTo(factor + i, left));
      if (residual != nullptr) v = hn::Add(LoadUpTo(residual + start + i, left), v);
      StoreUpTo(v, y + start + i, left);
    }
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(DropoutRange);

namespace {

constexpr int64_t kElementsPerTask = 16384;  // a multiple of 64
constexpr int64_t kMaxElements = int64_t{1} << 34;

}  // namespace

uint32_t DropoutThreshold(float p) {
  TUG_CHECK(p >= 0.0f && p < 1.0f) << "dropout " << p;
  return static_cast<uint32_t>(static_cast<double>(p) * 4294967296.0);
}

void BiasDropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, int64_t width,
                    const float* x, const float* bias, const float* residual, float p,
                    const DropoutKey& key, float* y) {
  TUG_CHECK_LE(elements_per_sample, kMaxElements);
  if (samples == 0 || elements_per_sample == 0) return;
  TUG_CHECK(bias == nullptr || elements_per_sample % width == 0);
  const DropoutKeeper keeper = MakeDropoutKeeper(key, p);
  const int64_t tasks_per_sample = (elements_per_sample + kElementsPerTask - 1) / kElementsPerTask;
  pool.ParallelFor(samples * tasks_per_sample, [&](int64_t task) {
    const int64_t sample = task / tasks_per_sample;
    const int64_t begin = task % tasks_per_sample * kElementsPerTask;
    const int64_t at = sample * elements_per_sample;
    HWY_DYNAMIC_DISPATCH(DropoutRange)
    (keeper, static_cast<uint32_t>(sample), begin,
     std::min(elements_per_sample, begin + kElementsPerTask), width, x + at, bias,
     residual == nullptr ? nullptr : residual + at, y + at);
  });
}

void DropoutAdd(ThreadPool& pool, int64_t samples, int64_t elements_per_sample, const float* x,
                const float* residual, float p, const DropoutKey& key, float* y) {
  BiasDropoutAdd(pool, samples, elements_per_sample, elements_per_sample, x, nullptr, residual, p,
                 key, y);
}

void DropoutBackward(ThreadPool& pool, int64_t samples, int64_t elements_per_sample,
                     const float* dy, float p, const DropoutKey& key, float* dx) {
  DropoutAdd(pool, samples, elements_per_sample, dy, nullptr, p, key, dx);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
