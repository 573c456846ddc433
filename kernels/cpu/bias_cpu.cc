// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// total[i] += dy[0][i] + dy[1][i] + ..., in this order, columns [0, count) of rows `stride` apart.
// Four vectors of columns stay in registers.
template <typename T>
void SumRows(int64_t rows, int64_t stride, int64_t count, const T* dy, float* total) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto s0 = hn::Zero(d);
    auto s1 = hn::Zero(d);
    auto s2 = hn::Zero(d);
    auto s3 = hn::Zero(d);
    const T* p = dy + i;
    for (int64_t row = 0; row < rows; ++row, p += stride) {
      s0 = hn::Add(s0, LoadUpTo(p, lanes));
      s1 = hn::Add(s1, LoadUpTo(p + lanes, lanes));
      s2 = hn::Add(s2, LoadUpTo(p + 2 * lanes, lanes));
      s3 = hn::Add(s3, LoadUpTo(p + 3 * lanes, lanes));
    }
    float* t = total + i;
    hn::StoreU(hn::Add(hn::LoadU(d, t), s0), d, t);
    hn::StoreU(hn::Add(hn::LoadU(d, t + lanes), s1), d, t + lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, t + 2 * lanes), s2), d, t + 2 * lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, t + 3 * lanes), s3), d, t + 3 * lanes);
  }
  for (; i < count; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t row = 0; row < rows; ++row) {
      sum = hn::Add(sum, LoadUpTo(dy + row * stride + i, count - i));
    }
    StoreUpTo(hn::Add(LoadUpTo(total + i, count - i), sum), total + i, count - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

namespace {

constexpr int64_t kRowsPerTask = 64;  // fixed: the order of summation depends on nothing else

}  // namespace

template <typename T>
void BiasGradient(ThreadPool& pool, int64_t rows, int64_t width, const T* dy, float* dbias) {
  if (rows == 0 || width == 0) return;
  const int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<float> parts(static_cast<size_t>(tasks * width), 0.0f);  // [tasks][width]
  pool.ParallelFor(tasks, [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    TUG_DISPATCH(SumRows, T)
    (std::min(kRowsPerTask, rows - row), width, width, dy + row * width,
     parts.data() + task * width);
  });
  TUG_DISPATCH(SumRows, float)(tasks, width, width, parts.data(), dbias);
}

template void BiasGradient(ThreadPool&, int64_t, int64_t, const float*, float*);
template void BiasGradient(ThreadPool&, int64_t, int64_t, const Bf16*, float*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
