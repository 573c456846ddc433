// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_SELECT_TOP_KERNELS_H_
#define TUG_COMPRESSION_CUDA_SELECT_TOP_KERNELS_H_

// Selects the elements of a segment with the largest magnitude, by one block: exactly those of
// compression/sparse/select_top.h. For .cu files.
//   1. Counts magnitudes that reach a threshold, by their upper 11 bits. The threshold comes from a
//      sample, since counting all magnitudes in a few buckets would be slow.
//   2. In the bucket of the last kept element: counts by the next 11 bits, and in one of these by
//      the last 9 (radix select). Ends early if a bucket is kept whole.
// Elements that reach the threshold are collected in shared memory as they are counted, so that
// only step 1 reads the segment from device memory, unless there are too many. Sums are of whole
// numbers, so the result does not depend on their order.

#include <cmath>

#include "compression/cuda/segments_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::cuda {

using kernels::cuda::kAllLanes;
using kernels::cuda::kWarp;

inline constexpr int kSelectThreads = 1024;
inline constexpr int kSelectWarps = kSelectThreads / kWarp;
inline constexpr int kBuckets = 2048;
inline constexpr unsigned kInfinityBits = 0x7F800000;

struct SelectScratch {
  unsigned counts[kBuckets];
  // Results of Pick: number counted; bucket; number to keep of it; number in it.
  unsigned total;
  unsigned bucket;
  unsigned left;
  unsigned in_bucket;
  unsigned largest;  // bits of the largest magnitude
  unsigned of_warp[2][kSelectWarps];
};

// Keeps magnitudes whose bits are above `above`, and the first `ties` of those that are equal.
struct Cut {
  unsigned above;
  unsigned ties;
};

__device__ __forceinline__ unsigned MagnitudeBits(float x) {
  return __float_as_uint(x) & 0x7FFFFFFFu;
}

// Elements that reach the threshold, by warp for its part of the segment, in order.
inline constexpr int kMaxCandidates = 256;
struct Candidates {
  float values[kSelectWarps][kMaxCandidates];
  unsigned at[kSelectWarps][kMaxCandidates];  // index in the segment
  unsigned found[kSelectWarps];               // may exceed kMaxCandidates
};

// Elements that a warp processes, in order: its part of the segment, or the candidates of it.
struct WarpElements {
  const float* values;
  const unsigned* at;  // null: element i is `first` + i of the segment
  int64_t first;
  int64_t count;

  __device__ __forceinline__ int64_t At(int64_t i) const {
    return at == nullptr ? first + i : at[i];
  }
};

// A warp's part: a multiple of kWarp, except the last warp's.
__device__ __forceinline__ WarpElements PartOfWarp(int64_t n, const float* values) {
  const int64_t size = (n + kSelectThreads - 1) / kSelectThreads * kWarp;
  const int64_t begin = min(threadIdx.x / kWarp * size, n);
  return {values + begin, nullptr, begin, min(size, n - begin)};
}

// The candidates, or the part if a warp has too many: the same choice in all warps.
__device__ __forceinline__ WarpElements CandidatesOr(const WarpElements& part,
                                                     const Candidates* candidates) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned most = __reduce_max_sync(kAllLanes, candidates->found[threadIdx.x % kWarp]);
  if (most > kMaxCandidates) return part;
  return {candidates->values[warp], candidates->at[warp], 0, candidates->found[warp]};
}

// Concurrent loads of a thread.
inline constexpr int kAtOnce = 8;

// use(i, value of i, whether i exists) in order, by all lanes of the warp together.
template <typename Use>
__device__ __forceinline__ void ForEach(const WarpElements& elements, Use use) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t begin = lane; begin - lane < elements.count; begin += kAtOnce * kWarp) {
    float x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = begin + j * kWarp;
      x[j] = i < elements.count ? elements.values[i] : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = begin + j * kWarp;
      use(i, x[j], i < elements.count);
    }
  }
}

// Zeros the counts, between two barriers: all threads have finished with the old ones.
__device__ __forceinline__ void ClearCounts(SelectScratch* scratch) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBuckets; i += kSelectThreads) {
    scratch->counts[i] = 0;
  }
  __syncthreads();
}

// Finds the bucket of the rank-th largest, if that many are counted. With barriers.
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

// Bits of a magnitude that, most likely, somewhat more than `keep` of n elements reach: the
// beginning of a bucket, or 1. `load`(i): element i.
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
    // A hashed place within the stride, so that regular input is not sampled at one place only.
    const auto within = static_cast<unsigned>(uint64_t{i * 2654435761u} * stride >> 32);
    atomicAdd(scratch->counts + (MagnitudeBits(load(int64_t{i} * stride + within)) >> kFirstShift),
              1u);
  }
  Pick(scratch, static_cast<unsigned>(wanted));
  const unsigned threshold = scratch->bucket << kFirstShift;
  return threshold > 1 ? threshold : 1;
}

// Keeps all magnitudes whose bits are at least `least`.
__device__ __forceinline__ Cut KeepFrom(unsigned least) { return {least > 1 ? least - 1 : 0, 0}; }

// Selects the `keep` largest elements that are not 0; all if they are fewer. REQUIRES: magnitudes
// that reach the threshold are counted, and all of them are in `elements`; if they are fewer than
// `keep`, `elements` becomes `part`.
__device__ __forceinline__ Cut SelectCut(SelectScratch* scratch, unsigned keep, unsigned threshold,
                                         const WarpElements& part, WarpElements& elements) {
  Pick(scratch, keep);
  if (scratch->total < keep && threshold > 1) {
    elements = part;
    ClearCounts(scratch);
    ForEach(part, [&](int64_t, float x, bool) { CountMagnitude(scratch, 1, MagnitudeBits(x)); });
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
    ForEach(elements, [&](int64_t, float x, bool there) {
      const unsigned bits = MagnitudeBits(x);
      if (there && bits >> before == prefix) {
        atomicAdd(scratch->counts + (bits >> shift & ((1u << (before - shift)) - 1)), 1u);
      }
    });
    Pick(scratch, left);
    prefix = prefix << (before - shift) | scratch->bucket;
  }
  return {prefix, scratch->left};
}

// Kept elements and ties of earlier warps, and kept elements of all warps.
struct KeptBefore {
  unsigned kept;
  unsigned ties;
  unsigned all_kept;
};

__device__ __forceinline__ KeptBefore CountKept(SelectScratch* scratch, const Cut& cut,
                                                const WarpElements& elements) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  unsigned above = 0, ties = 0;
  ForEach(elements, [&](int64_t, float x, bool there) {
    const unsigned bits = MagnitudeBits(x);
    above += bits > cut.above ? 1 : 0;
    ties += there && bits == cut.above ? 1 : 0;
  });
  above = __reduce_add_sync(kAllLanes, above);
  ties = __reduce_add_sync(kAllLanes, ties);
  if (lane == 0) {
    scratch->of_warp[0][warp] = above;
    scratch->of_warp[1][warp] = ties;
  }
  __syncthreads();
  const unsigned above_of_lane = scratch->of_warp[0][lane];
  const unsigned ties_of_lane = scratch->of_warp[1][lane];
  KeptBefore before;
  before.kept = __reduce_add_sync(kAllLanes, lane < warp ? above_of_lane : 0);
  before.ties = __reduce_add_sync(kAllLanes, lane < warp ? ties_of_lane : 0);
  before.kept += min(before.ties, cut.ties);
  before.all_kept = __reduce_add_sync(kAllLanes, above_of_lane) +
                    min(__reduce_add_sync(kAllLanes, ties_of_lane), cut.ties);
  return before;
}

// use(rank, index in the segment, value) for this warp's kept elements. `rank`: among all kept
// elements, in order.
template <typename Use>
__device__ __forceinline__ void ForEachKept(const KeptBefore& before, const Cut& cut,
                                            const WarpElements& elements, Use use) {
  const unsigned lower_lanes = (1u << (threadIdx.x % kWarp)) - 1;
  unsigned kept = before.kept, ties = before.ties;
  ForEach(elements, [&](int64_t i, float x, bool there) {
    const unsigned bits = MagnitudeBits(x);
    const bool tie = there && cut.ties > 0 && bits == cut.above;
    const unsigned all_ties = __ballot_sync(kAllLanes, tie);
    const bool keep = bits > cut.above || (tie && ties + __popc(all_ties & lower_lanes) < cut.ties);
    const unsigned all_kept = __ballot_sync(kAllLanes, keep);
    if (keep) use(kept + __popc(all_kept & lower_lanes), elements.At(i), x);
    kept += __popc(all_kept);
    ties += __popc(all_ties);
  });
}

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_SELECT_TOP_KERNELS_H_
