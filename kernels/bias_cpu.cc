#include <algorithm>
#include <vector>

#include "kernels/add.h"
#include "kernels/bias.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bias_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

void AddRange(int64_t n, const float* a, const float* b, float* y) {
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const int64_t left = n - i;
    StoreUpTo(hn::Add(LoadUpTo(a + i, left), LoadUpTo(b + i, left)), y + i, left);
  }
}

void AddBiasRows(int64_t rows, int64_t width, const float* bias, float* x) {
  for (int64_t row = 0; row < rows; ++row) AddRange(width, x + row * width, bias, x + row * width);
}

// total[i] += dy[0][i] + dy[1][i] + ..., in this order, columns [0, count) of rows `stride` apart.
// Four vectors of columns at a time stay in registers.
void SumRows(int64_t rows, int64_t stride, int64_t count, const float* dy, float* total) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto s0 = hn::Zero(d);
    auto s1 = hn::Zero(d);
    auto s2 = hn::Zero(d);
    auto s3 = hn::Zero(d);
    const float* p = dy + i;
    for (int64_t row = 0; row < rows; ++row, p += stride) {
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
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

HWY_EXPORT(AddRange);
HWY_EXPORT(AddBiasRows);
HWY_EXPORT(SumRows);

namespace {

constexpr int64_t kElementsPerTask = 16384;
constexpr int64_t kRowsPerTask =
    64;  // of BiasGradient: the order of its sum depends on nothing else

}  // namespace

void Add(ThreadPool& pool, int64_t n, const float* a, const float* b, float* y) {
  pool.ParallelFor((n + kElementsPerTask - 1) / kElementsPerTask, [&](int64_t task) {
    const int64_t i = task * kElementsPerTask;
    HWY_DYNAMIC_DISPATCH(AddRange)(std::min(kElementsPerTask, n - i), a + i, b + i, y + i);
  });
}

void AddBias(ThreadPool& pool, int64_t rows, int64_t width, const float* bias, float* x) {
  if (rows == 0 || width == 0) return;
  const int64_t per_task = std::max<int64_t>(1, kElementsPerTask / width);
  pool.ParallelFor((rows + per_task - 1) / per_task, [&](int64_t task) {
    const int64_t row = task * per_task;
    HWY_DYNAMIC_DISPATCH(AddBiasRows)
    (std::min(per_task, rows - row), width, bias, x + row * width);
  });
}

void BiasGradient(ThreadPool& pool, int64_t rows, int64_t width, const float* dy, float* dbias) {
  if (rows == 0 || width == 0) return;
  const int64_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  std::vector<float> parts(static_cast<size_t>(tasks * width), 0.0f);  // [tasks][width]
  pool.ParallelFor(tasks, [&](int64_t task) {
    const int64_t row = task * kRowsPerTask;
    HWY_DYNAMIC_DISPATCH(SumRows)
    (std::min(kRowsPerTask, rows - row), width, width, dy + row * width,
     parts.data() + task * width);
  });
  HWY_DYNAMIC_DISPATCH(SumRows)(tasks, width, width, parts.data(), dbias);
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
