// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse/select_top.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/sparse/select_top.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Writes to `found` first + i for every i with a magnitude, as bits, of at least `threshold`, and
// anything to as many places after them as a vector has lanes. Returns their number; raises
// `largest` to the largest bits of a magnitude read. REQUIRES: threshold >= 1.
size_t CollectAtLeast(const float* x, int64_t n, int32_t threshold, uint32_t first, uint32_t* found,
                      int32_t* largest) {
  static_assert(HWY_MAX_BYTES <= 64 * sizeof(float));  // kVectorSlack
  const hn::RebindToUnsigned<FloatTag> du;
  const IntTag di;
  const auto below = hn::Set(di, threshold - 1);
  const auto step = hn::Set(du, static_cast<uint32_t>(FloatLanes()));
  auto at = hn::Iota(du, first);
  auto most = hn::Set(di, *largest);
  size_t count = 0;
  const auto collect = [&](FloatVector v) HWY_ATTR {
    const auto magnitude = hn::BitCast(di, hn::Abs(v));
    most = hn::Max(most, magnitude);
    const auto reaches = hn::Gt(magnitude, below);
    hn::StoreU(hn::Compress(at, hn::RebindMask(du, reaches)), du, found + count);
    count += hn::CountTrue(di, reaches);
    at = hn::Add(at, step);
  };
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) collect(hn::LoadU(FloatTag(), x + i));
  if (i < n) collect(LoadUpTo(x + i, n - i));
  *largest = hn::GetLane(hn::MaxOfLanes(di, most));
  return count;
}

// velocity = momentum * velocity + x, residual += velocity.
void Accumulate(const float* HWY_RESTRICT x, float momentum, float* HWY_RESTRICT velocity,
                float* HWY_RESTRICT residual, int64_t n) {
  const auto decay = hn::Set(FloatTag(), momentum);
  for (int64_t i = 0; i < n; i += FloatLanes()) {
    const auto old = LoadUpTo(velocity + i, n - i);
    const auto u = hn::Add(hn::Mul(decay, old), LoadUpTo(x + i, n - i));
    StoreUpTo(u, velocity + i, n - i);
    StoreUpTo(hn::Add(LoadUpTo(residual + i, n - i), u), residual + i, n - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug {
namespace kernels {
HWY_EXPORT(CollectAtLeast);
HWY_EXPORT(Accumulate);
}  // namespace kernels
namespace {

constexpr uint32_t kInfinityBits = 0x7F800000;
constexpr size_t kVectorSlack = 64;  // lanes of the widest vectors
// Elements that stay in the nearest cache between two steps.
constexpr size_t kChunk = 4096;

uint32_t MagnitudeBits(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF; }

// How many to keep: all that reach the threshold if they are within these bounds, else `count`.
struct Quota {
  size_t least;
  size_t count;
  size_t most;
  bool exact() const { return least == most; }
};

Quota Exactly(size_t count) { return {count, count, count}; }
Quota About(size_t count, size_t elements) {
  return {(count + 1) / 2, count, std::min(MostAbout(count), elements)};
}

// Bits of a magnitude that about quota.count of n elements reach; with an exact quota, most likely
// at least that many, and not many more. `at`: the element at an index.
template <typename At>
uint32_t LikelyThreshold(size_t n, const Quota& quota, At at) {
  constexpr size_t kSample = 4096;
  constexpr uint32_t kShift = 18;  // buckets of 1/32 of a power of two
  const size_t stride = n / kSample;
  if (stride < 4) return 1;
  const double expected = static_cast<double>(quota.count) * kSample / static_cast<double>(n);
  const double wanted =
      quota.exact() ? expected + 5 * std::sqrt(expected) + 2 : std::max(expected, 1.0);
  if (wanted >= kSample / 2.0) return 1;
  uint16_t counts[(uint32_t{1} << 31 >> kShift)] = {};
  uint32_t top = 0;
  for (uint32_t i = 0; i < kSample; ++i) {
    // A hashed place within the stride, so that regular input is not sampled at one place only.
    const size_t within = uint64_t{i * 2654435761u} * stride >> 32;
    const uint32_t bucket = MagnitudeBits(at(i * stride + within)) >> kShift;
    ++counts[bucket];
    top = std::max(top, bucket);
  }
  const auto rank = static_cast<uint32_t>(wanted);
  uint32_t seen = counts[top];
  while (top > 0 && seen < rank) seen += counts[--top];
  return std::max(top << kShift, uint32_t{1});
}

struct Candidates {
  std::span<uint32_t> indices;  // ascending
  uint32_t least;               // bounds of the bits of their magnitudes
  uint32_t largest;
};

// Keeps the `count` largest, in place and in order. Each pass narrows the range of the last kept
// one by 11 bits. REQUIRES: count < candidates.
std::span<const uint32_t> Keep(const float* x, const Candidates& candidates, size_t count) {
  constexpr int kBits = 11;
  uint32_t low = candidates.least;
  uint32_t high = candidates.largest;
  size_t rank = count;  // of the last kept one, among those in the range
  while (low < high) {
    const uint32_t range = high - low;
    const int shift = std::max(static_cast<int>(std::bit_width(range)) - kBits, 0);
    uint32_t counts[uint32_t{1} << kBits] = {};
    for (const uint32_t index : candidates.indices) {
      const uint32_t above = MagnitudeBits(x[index]) - low;  // huge if below the range
      if (above <= range) ++counts[above >> shift];
    }
    uint32_t bucket = range >> shift;
    while (counts[bucket] < rank) rank -= counts[bucket--];
    low += bucket << shift;
    high = std::min(high, low + (uint32_t{1} << shift) - 1);
  }
  size_t kept = 0;
  for (const uint32_t index : candidates.indices) {
    const uint32_t magnitude = MagnitudeBits(x[index]);
    const bool tie = magnitude == low && rank > 0;
    candidates.indices[kept] = index;
    kept += magnitude > low || tie ? 1 : 0;
    rank -= tie ? 1 : 0;
  }
  return candidates.indices.first(kept);
}

struct Nothing {
  void operator()(size_t, size_t) const {}
};

// Calls `prepare`(i, n) for elements [i, i + n) before they are read.
template <typename Prepare>
std::optional<std::span<const uint32_t>> Select(std::span<const float> x, const Quota& quota,
                                                uint32_t threshold, CodecScratch& scratch,
                                                Prepare prepare) {
  TUG_CHECK(quota.count >= 1 && quota.count <= x.size());
  const size_t room = x.size() + kVectorSlack;
  const auto found =
      std::span(reinterpret_cast<uint32_t*>(scratch.Take(room * sizeof(uint32_t)).data()), room);
  size_t candidates = 0;
  int32_t largest = 0;
  for (size_t i = 0; i < x.size(); i += kChunk) {
    const size_t n = std::min(kChunk, x.size() - i);
    prepare(i, n);
    candidates += HWY_DYNAMIC_DISPATCH(kernels::CollectAtLeast)(
        x.data() + i, static_cast<int64_t>(n), static_cast<int32_t>(threshold),
        static_cast<uint32_t>(i), found.data() + candidates, &largest);
  }
  if (static_cast<uint32_t>(largest) >= kInfinityBits) return std::nullopt;
  if (candidates < quota.least && threshold > 1) {
    return Select(x, quota, 1, scratch, Nothing());
  }
  const Candidates all = {found.first(candidates), threshold, static_cast<uint32_t>(largest)};
  if (candidates <= quota.most) return all.indices;
  return Keep(x.data(), all, quota.count);
}

std::optional<std::span<const uint32_t>> SelectOf(std::span<const float> elements,
                                                  const Quota& quota, CodecScratch& scratch) {
  const uint32_t threshold =
      LikelyThreshold(elements.size(), quota, [&](size_t i) { return elements[i]; });
  return Select(elements, quota, threshold, scratch, Nothing());
}

}  // namespace

std::optional<std::span<const uint32_t>> SelectTop(std::span<const float> elements, size_t count,
                                                   CodecScratch& scratch) {
  return SelectOf(elements, Exactly(count), scratch);
}

std::optional<std::span<const uint32_t>> SelectAbout(std::span<const float> elements, size_t count,
                                                     CodecScratch& scratch) {
  return SelectOf(elements, About(count, elements.size()), scratch);
}

std::optional<std::span<const uint32_t>> AddAndSelectTop(std::span<const float> elements,
                                                         std::span<float> residual, size_t count,
                                                         CodecScratch& scratch) {
  TUG_CHECK_EQ(elements.size(), residual.size());
  const Quota quota = Exactly(count);
  const uint32_t threshold =
      LikelyThreshold(elements.size(), quota, [&](size_t i) { return residual[i] + elements[i]; });
  return Select(residual, quota, threshold, scratch, [&](size_t i, size_t n) {
    kernels::AddAndCheck(elements.data() + i, residual.data() + i, static_cast<int64_t>(n));
  });
}

std::optional<std::span<const uint32_t>> AccumulateAndSelectAbout(
    std::span<const float> elements, float momentum, std::span<float> velocity,
    std::span<float> residual, size_t count, CodecScratch& scratch) {
  TUG_CHECK(elements.size() == velocity.size() && elements.size() == residual.size());
  const Quota quota = About(count, elements.size());
  const uint32_t threshold = LikelyThreshold(elements.size(), quota, [&](size_t i) {
    return residual[i] + (momentum * velocity[i] + elements[i]);
  });
  return Select(residual, quota, threshold, scratch, [&](size_t i, size_t n) {
    HWY_DYNAMIC_DISPATCH(kernels::Accumulate)
    (elements.data() + i, momentum, velocity.data() + i, residual.data() + i,
     static_cast<int64_t>(n));
  });
}

}  // namespace tug
#endif  // HWY_ONCE
