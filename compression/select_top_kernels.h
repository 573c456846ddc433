#ifndef TUG_COMPRESSION_SELECT_TOP_KERNELS_H_
#define TUG_COMPRESSION_SELECT_TOP_KERNELS_H_

// Which elements of a segment are of the largest magnitude, found by one block: what
// compression/select_top.h says, to the element. For .cu files.
//   1. Counts, by their upper 11 bits, the magnitudes that reach a threshold: of a sample's, since
//      counting all of them in a few buckets would be slow.
//   2. Of the bucket in which the last one lies that is kept: counts by the next 11 bits, and of
//      one of these by the last 9 (radix select). Ends early where a bucket is kept whole.
// Sums of whole numbers: the result depends on no order.

#include <cmath>

#include "compression/segments_cuda.h"
#include "kernels/cuda_language.h"

namespace tug::cuda {

using kernels::cuda::kAllLanes;
using kernels::cuda::kWarp;

inline constexpr int kSelectThreads = 1024;
inline constexpr int kSelectWarps = kSelectThreads / kWarp;
inline constexpr int kBuckets = 2048;
inline constexpr unsigned kInfinityBits = 0x7F800000;

struct SelectScratch {
  unsigned counts[kBuckets];
  // Of Pick: how many are counted; the bucket; what is kept of it; how many are in it.
  unsigned total;
  unsigned bucket;
  unsigned left;
  unsigned in_bucket;
  unsigned largest;  // bits of a magnitude
  unsigned of_warp[2][kSelectWarps];
};

// Kept are magnitudes whose bits are above `above`, and the first `ties` of those that are equal.
struct Cut {
  unsigned above;
  unsigned ties;
};

__device__ __forceinline__ unsigned MagnitudeBits(float x) {
  return __float_as_uint(x) & 0x7FFFFFFFu;
}

// Loads of a thread that are on their way at a time.
inline constexpr int kAtOnce = 8;

// use(i, load(i)) for all i below n, by all threads of the block.
template <typename Load, typename Use>
__device__ __forceinline__ void Sweep(int64_t n, Load load, Use use) {
  for (int64_t at = threadIdx.x; at < n; at += kAtOnce * kSelectThreads) {
    decltype(load(at)) loaded[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = at + j * kSelectThreads;
      if (i < n) loaded[j] = load(i);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = at + j * kSelectThreads;
      if (i < n) use(i, loaded[j]);
    }
  }
}

// A barrier: nobody uses the counts of before.
__device__ __forceinline__ void ClearCounts(SelectScratch* scratch) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBuckets; i += kSelectThreads) {
    scratch->counts[i] = 0;
  }
  __syncthreads();
}

// The bucket of the rank-th largest, where so many are counted. With barriers.
__device__ __forceinline__ void Pick(SelectScratch* scratch, unsigned rank) {
  constexpr int kOfLane = kBuckets / kWarp;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    const int lane = static_cast<int>(threadIdx.x);
    const unsigned* const counts = scratch->counts + lane * kOfLane;
    unsigned mine = 0;
    for (int i = 0; i < kOfLane; ++i) mine += counts[(i + lane) % kOfLane];  // in different banks
    unsigned to_top = mine;
    for (int apart = 1; apart < kWarp; apart *= 2) {
      const unsigned further = __shfl_down_sync(kAllLanes, to_top, apart);
      if (lane + apart < kWarp) to_top += further;
    }
    if (lane == 0) scratch->total = to_top;
    unsigned left = rank - (to_top - mine);
    if (to_top - mine < rank && rank <= to_top) {
      int bucket = kOfLane - 1;
      while (counts[bucket] < left) left -= counts[bucket--];
      scratch->bucket = static_cast<unsigned>(lane * kOfLane + bucket);
      scratch->left = left;
      scratch->in_bucket = counts[bucket];
    }
  }
  __syncthreads();
}

inline constexpr int kFirstShift = 20;

__device__ __forceinline__ void CountMagnitude(SelectScratch* scratch, unsigned threshold,
                                               unsigned bits) {
  if (bits >= threshold) atomicAdd(scratch->counts + (bits >> kFirstShift), 1u);
}

// Bits of a magnitude that somewhat more than `keep` of n elements reach, most likely: a beginning
// of a bucket, or 1. `load`(i): element i.
template <typename Load>
__device__ __forceinline__ unsigned LikelyThreshold(SelectScratch* scratch, int64_t n,
                                                    unsigned keep, Load load) {
  constexpr unsigned kSample = 4096;
  const auto stride = static_cast<unsigned>(n / kSample);
  const float expected = static_cast<float>(keep) * kSample / static_cast<float>(n);
  const float wanted = expected + 5 * sqrtf(expected) + 2;
  if (stride < 4 || wanted >= kSample / 2) return 1;
  ClearCounts(scratch);
  for (unsigned i = threadIdx.x; i < kSample; i += kSelectThreads) {
    // Anywhere in its stride, so that no regular input is seen in one place only.
    const auto within = static_cast<unsigned>(uint64_t{i * 2654435761u} * stride >> 32);
    atomicAdd(scratch->counts + (MagnitudeBits(load(int64_t{i} * stride + within)) >> kFirstShift),
              1u);
  }
  Pick(scratch, static_cast<unsigned>(wanted));
  const unsigned threshold = scratch->bucket << kFirstShift;
  return threshold > 1 ? threshold : 1;
}

// All buckets from this one on are kept whole.
__device__ __forceinline__ Cut KeepFrom(unsigned least) { return {least > 1 ? least - 1 : 0, 0}; }

// Which `keep` of n elements are kept, of those that are not 0; all if they are fewer. `load`(i):
// element i. REQUIRES: magnitudes that reach the threshold are counted.
template <typename Load>
__device__ __forceinline__ Cut SelectCut(SelectScratch* scratch, int64_t n, unsigned keep,
                                         unsigned threshold, Load load) {
  Pick(scratch, keep);
  if (scratch->total < keep && threshold > 1) {
    ClearCounts(scratch);
    Sweep(n, load, [&](int64_t, float x) { CountMagnitude(scratch, 1, MagnitudeBits(x)); });
    Pick(scratch, keep);
  }
  if (scratch->total < keep) return KeepFrom(1);
  unsigned prefix = scratch->bucket;
  constexpr int kShifts[] = {kFirstShift, 9, 0};
#pragma unroll
  for (int step = 1; step < 3; ++step) {
    const int before = kShifts[step - 1], shift = kShifts[step];
    if (scratch->left == scratch->in_bucket) return KeepFrom(prefix << before);
    const unsigned left = scratch->left;
    ClearCounts(scratch);
    Sweep(n, load, [&](int64_t, float x) {
      const unsigned bits = MagnitudeBits(x);
      if (bits >> before == prefix) {
        atomicAdd(scratch->counts + (bits >> shift & ((1u << (before - shift)) - 1)), 1u);
      }
    });
    Pick(scratch, left);
    prefix = prefix << (before - shift) | scratch->bucket;
  }
  return {prefix, scratch->left};
}

// A warp's part of the segment, a multiple of kWarp but for the last; and what is kept before it.
struct WarpPart {
  int64_t begin;
  int64_t end;
  unsigned kept;  // in earlier parts
  unsigned ties;  // in them
  unsigned all_kept;
};

template <typename Load>
__device__ __forceinline__ WarpPart CountKept(SelectScratch* scratch, int64_t n, const Cut& cut,
                                              Load load) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t size = (n + kSelectThreads - 1) / kSelectThreads * kWarp;
  WarpPart part = {warp * size, (warp + 1) * size, 0, 0, 0};
  if (part.begin > n) part.begin = n;
  if (part.end > n) part.end = n;
  unsigned above = 0, ties = 0;
#pragma unroll 8
  for (int64_t i = part.begin + lane; i < part.end; i += kWarp) {
    const unsigned bits = MagnitudeBits(load(i));
    above += bits > cut.above ? 1 : 0;
    ties += bits == cut.above ? 1 : 0;
  }
  above = __reduce_add_sync(kAllLanes, above);
  ties = __reduce_add_sync(kAllLanes, ties);
  if (lane == 0) {
    scratch->of_warp[0][warp] = above;
    scratch->of_warp[1][warp] = ties;
  }
  __syncthreads();
  const unsigned above_of_lane = scratch->of_warp[0][lane];
  const unsigned ties_of_lane = scratch->of_warp[1][lane];
  part.kept = __reduce_add_sync(kAllLanes, lane < warp ? above_of_lane : 0);
  part.ties = __reduce_add_sync(kAllLanes, lane < warp ? ties_of_lane : 0);
  part.kept += min(part.ties, cut.ties);
  part.all_kept = __reduce_add_sync(kAllLanes, above_of_lane) +
                  min(__reduce_add_sync(kAllLanes, ties_of_lane), cut.ties);
  return part;
}

// use(rank, i, load(i)) for those of this warp's part that are kept: `rank` of all that are kept,
// in order.
template <typename Load, typename Use>
__device__ __forceinline__ void ForEachKept(const WarpPart& part, const Cut& cut, Load load,
                                            Use use) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned before = (1u << lane) - 1;
  unsigned kept = part.kept, ties = part.ties;
  for (int64_t at = part.begin; at < part.end; at += kAtOnce * kWarp) {
    float x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = at + j * kWarp + lane;
      x[j] = i < part.end ? load(i) : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const unsigned bits = MagnitudeBits(x[j]);
      const bool tie = cut.ties > 0 && bits == cut.above;
      const unsigned all_ties = __ballot_sync(kAllLanes, tie);
      const bool keep = bits > cut.above || (tie && ties + __popc(all_ties & before) < cut.ties);
      const unsigned all_kept = __ballot_sync(kAllLanes, keep);
      if (keep) use(kept + __popc(all_kept & before), at + j * kWarp + lane, x[j]);
      kept += __popc(all_kept);
      ties += __popc(all_ties);
    }
  }
}

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_SELECT_TOP_KERNELS_H_
