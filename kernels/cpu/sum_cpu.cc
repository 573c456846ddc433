// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "kernels/sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sum_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// dst = src, or with kAdd dst = a + src; `a` may be dst. Returns whether src is finite.
template <bool kAdd>
HWY_INLINE bool TransferAndCheck(const float* a, const float* HWY_RESTRICT src, float* dst,
                                 int64_t n) {
  auto largest0 = hn::Zero(IntTag());
  auto largest1 = hn::Zero(IntTag());
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  const FloatTag d;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    auto x0 = hn::LoadU(d, src + i);
    auto x1 = hn::LoadU(d, src + i + lanes);
    largest0 = LargestMagnitude(largest0, x0);
    largest1 = LargestMagnitude(largest1, x1);
    if constexpr (kAdd) {
      x0 = hn::Add(hn::LoadU(d, a + i), x0);
      x1 = hn::Add(hn::LoadU(d, a + i + lanes), x1);
    }
    hn::StoreU(x0, d, dst + i);
    hn::StoreU(x1, d, dst + i + lanes);
  }
  for (; i < n; i += lanes) {
    auto x = LoadUpTo(src + i, n - i);
    largest0 = LargestMagnitude(largest0, x);
    if constexpr (kAdd) x = hn::Add(LoadUpTo(a + i, n - i), x);
    StoreUpTo(x, dst + i, n - i);
  }
  return IsFinite(hn::Max(largest0, largest1));
}

bool CopyAndCheck(const float* src, float* dst, int64_t n) {
  return TransferAndCheck<false>(nullptr, src, dst, n);
}

bool AddAndCheck(const float* src, float* acc, int64_t n) {
  return TransferAndCheck<true>(acc, src, acc, n);
}

bool SumAndCheck(const float* a, const float* b, float* sum, int64_t n) {
  return TransferAndCheck<true>(a, b, sum, n);
}

bool AllFinite(const float* x, int64_t n) {
  auto largest0 = hn::Zero(IntTag());
  auto largest1 = hn::Zero(IntTag());
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    largest0 = LargestMagnitude(largest0, LoadUpTo(x + i, lanes));
    largest1 = LargestMagnitude(largest1, LoadUpTo(x + i + lanes, lanes));
  }
  for (; i < n; i += lanes) largest0 = LargestMagnitude(largest0, LoadUpTo(x + i, n - i));
  return IsFinite(hn::Max(largest0, largest1));
}

// Sum of one chunk: n <= kSumChunk. Four accumulators of FP64 lanes, combined in a fixed order.
double ChunkSumOfSquares(const float* x, int64_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, hn::ScalableTag<double>> df;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(dd));
  auto sum0 = hn::Zero(dd);
  auto sum1 = hn::Zero(dd);
  auto sum2 = hn::Zero(dd);
  auto sum3 = hn::Zero(dd);
  const auto square = [&](auto v) HWY_ATTR {
    const auto wide = hn::PromoteTo(hn::ScalableTag<double>(), v);
    return hn::Mul(wide, wide);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    sum0 = hn::Add(sum0, square(hn::LoadU(df, x + i)));
    sum1 = hn::Add(sum1, square(hn::LoadU(df, x + i + lanes)));
    sum2 = hn::Add(sum2, square(hn::LoadU(df, x + i + 2 * lanes)));
    sum3 = hn::Add(sum3, square(hn::LoadU(df, x + i + 3 * lanes)));
  }
  for (; i < n; i += lanes) {
    const auto left = static_cast<size_t>(std::min(lanes, n - i));
    sum0 = hn::Add(sum0, square(hn::MaskedLoad(hn::FirstN(df, left), df, x + i)));
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  return hn::GetLane(hn::SumOfLanes(dd, sum));
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(CopyAndCheck);
HWY_EXPORT(AddAndCheck);
HWY_EXPORT(SumAndCheck);
HWY_EXPORT(AllFinite);
HWY_EXPORT(ChunkSumOfSquares);

bool CopyAndCheck(const float* src, float* dst, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(CopyAndCheck)(src, dst, n);
}

bool AddAndCheck(const float* src, float* acc, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(AddAndCheck)(src, acc, n);
}

bool SumAndCheck(const float* a, const float* b, float* sum, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumAndCheck)(a, b, sum, n);
}

bool AllFinite(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(AllFinite)(x, n); }

namespace {

// Leaves of the left subtree: the largest power of two below `leaves`. Splitting there gives the
// same tree as pairing neighbours level by level with an odd last one moving up.
// REQUIRES: leaves >= 2.
uint64_t LeftLeaves(uint64_t leaves) { return std::bit_floor(leaves - 1); }

}  // namespace

double SumOfSquares(const float* x, int64_t n) {
  if (n <= kSumChunk) return n == 0 ? 0.0 : HWY_DYNAMIC_DISPATCH(ChunkSumOfSquares)(x, n);
  const int64_t chunks = (n + kSumChunk - 1) / kSumChunk;
  const int64_t left = static_cast<int64_t>(LeftLeaves(static_cast<uint64_t>(chunks))) * kSumChunk;
  return SumOfSquares(x, left) + SumOfSquares(x + left, n - left);
}

double TreeFold(std::span<const double> leaves) {
  if (leaves.empty()) return 0.0;
  if (leaves.size() == 1) return leaves[0];
  const uint64_t left = LeftLeaves(leaves.size());
  return TreeFold(leaves.first(left)) + TreeFold(leaves.subspan(left));
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
