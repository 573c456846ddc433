#ifndef TUG_COMPRESSION_SELECT_TOP_KERNELS_H_
#define TUG_COMPRESSION_SELECT_TOP_KERNELS_H_

// Which elements of a segment are of the largest magnitude, found by one block: what
// compression/select_top.h says, to the element. For .cu files.
//   1. Counts, by their upper 11 bits, the magnitudes that reach a threshold: of a sample's, since
//      counting all of them in a few buckets would be slow.
//   2. Of the bucket in which the last one lies that is kept: counts by the next 11 bits, and of
//      one of these by the last 9 (radix select). Ends early where a bucket is kept whole.
// What reaches the threshold is put aside in shared memory as it is counted, so that only step 1
// reads the segment from device memory, unless there is more of it than room. Sums of whole
// numbers: the result depends on no order.

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

// Those that reach the threshold, each warp's of its part of the segment, in order.
inline constexpr int kMostCandidates = 256;
struct Candidates {
  float values[kSelectWarps][kMostCandidates];
  unsigned at[kSelectWarps][kMostCandidates];  // in the segment
  unsigned found[kSelectWarps];                // perhaps more than there is room for
};

// Elements that a warp looks at, in their order: its part of the segment, or the candidates of it.
struct WarpElements {
  const float* values;
  const unsigned* at;  // null: element i is `first` + i of the segment
  int64_t first;
  int64_t count;

  __device__ __forceinline__ int64_t At(int64_t i) const {
    return at == nullptr ? first + i : at[i];
  }
};

// A warp's part: a multiple of kWarp but for the last.
__device__ __forceinline__ WarpElements PartOfWarp(int64_t n, const float* values) {
  const int64_t size = (n + kSelectThreads - 1) / kSelectThreads * kWarp;
  const int64_t begin = min(threadIdx.x / kWarp * size, n);
  return {values + begin, nullptr, begin, min(size, n - begin)};
}

// The candidates, or the part where they are too many: the same in all warps.
__device__ __forceinline__ WarpElements CandidatesOr(const WarpElements& part,
                                                     const Candidates* candidates) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned most = __reduce_max_sync(kAllLanes, candidates->found[threadIdx.x % kWarp]);
  if (most > kMostCandidates) return part;
  return {candidates->values[warp], candidates->at[warp], 0, candidates->found[warp]};
}

// Loads of a thread that are on their way at a time.
inline constexpr int kAtOnce = 8;

// use(i, value of i, whether there is an i) in order, by all lanes of the warp together.
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

// Which `keep` elements are kept, of those that are not 0; all if they are fewer. REQUIRES:
// magnitudes that reach the threshold are counted, and all of them are in `elements`; if they are
// fewer than `keep`, that becomes `part`.
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

// What is kept of earlier warps' elements, how many of it are ties, and what is kept of all.
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

// use(rank, place in the segment, value) for those of this warp's elements that are kept: `rank` of
// all that are kept, in order.
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

#endif  // TUG_COMPRESSION_SELECT_TOP_KERNELS_H_
