// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/top_k_cuda.h"

#include "base/status_macros.h"
#include "compression/cuda/select_top_kernels.h"

namespace tug::cuda {
namespace {

using kernels::cuda::Launch;
using kernels::cuda::SharedMemory;
using kernels::cuda::Stream;

// Positions of the parts of an encoding (sparse_values.h, sorted_indices.h), in bits.
struct Layout {
  int low_bits;       // per index
  int64_t low;        // low bits of all indices
  int64_t high;       // row of high bits
  int64_t high_bits;  // its length, in whole words of 64
  int64_t values;
  int64_t bytes;  // of the whole encoding
};

__device__ __forceinline__ Layout LayoutOf(int64_t elements, unsigned count) {
  constexpr int64_t kCountBits = 32;
  if (count == 0) return {0, kCountBits, kCountBits, 0, kCountBits, kCountBits / 8};
  const int low_bits = 31 - __clz(static_cast<int>(elements / count));
  const int64_t high = kCountBits + (count * int64_t{low_bits} + 7) / 8 * 8;
  const int64_t high_bits = (count + ((elements - 1) >> low_bits) + 63) / 64 * 64;
  const int64_t values = high + high_bits;
  return {low_bits, kCountBits, high, high_bits, values, values / 8 + count * int64_t{4}};
}

// KeptElements of sparse.h.
__device__ __forceinline__ unsigned KeptElements(double density, int64_t elements) {
  const long long kept = llround(density * static_cast<double>(elements));
  return static_cast<unsigned>(kept < 1 ? 1 : kept > elements ? elements : kept);
}

// Sets the lowest `count` bits (up to 32) of `bits` at `bit`, in words that hold zeros there.
__device__ __forceinline__ void PutBits(unsigned* words, int64_t bit, unsigned bits, int count) {
  const int shift = static_cast<int>(bit % 32);
  if (bits << shift != 0) atomicOr(words + bit / 32, bits << shift);
  if (shift + count > 32) atomicOr(words + bit / 32 + 1, bits >> (32 - shift));
}

__device__ __forceinline__ unsigned TakeBits(const unsigned* words, int64_t bit, int count) {
  if (count == 0) return 0;
  const int shift = static_cast<int>(bit % 32);
  unsigned bits = words[bit / 32] >> shift;
  if (shift + count > 32) bits |= words[bit / 32 + 1] << (32 - shift);
  return count == 32 ? bits : bits & ((1u << count) - 1);
}

// Writes the encoding, and zeros to the residual (may be null) where an element is kept. Returns
// its length, in all threads.
__device__ __forceinline__ unsigned WriteKept(SelectScratch* scratch, int64_t n, const Cut& cut,
                                              const WarpElements& from, float* residual,
                                              unsigned* words) {
  const KeptBefore before = CountKept(scratch, cut, from);
  const Layout layout = LayoutOf(n, before.all_kept);
  for (int64_t i = threadIdx.x; i < (layout.bytes + 3) / 4; i += kSelectThreads) {
    words[i] = i == 0 ? before.all_kept : 0;
  }
  __syncthreads();
  ForEachKept(before, cut, from, [&](unsigned rank, int64_t i, float x) {
    const auto index = static_cast<unsigned>(i);
    const unsigned low = index & ((1u << layout.low_bits) - 1);
    PutBits(words, layout.low + rank * int64_t{layout.low_bits}, low, layout.low_bits);
    PutBits(words, layout.high + rank + (index >> layout.low_bits), 1, 1);
    PutBits(words, layout.values + rank * int64_t{32}, __float_as_uint(x), 32);
    if (residual != nullptr) residual[i] = 0.0f;
  });
  return static_cast<unsigned>(layout.bytes);
}

// Adds a warp's part of the elements to the residual; with `alone`, as if the residual were zeros.
// Counts the magnitudes from the threshold on, and collects them as candidates. Returns the bits of
// the largest magnitude that the lane has read.
__device__ __forceinline__ unsigned AccumulatePart(SelectScratch* scratch, Candidates* candidates,
                                                   unsigned threshold, const WarpElements& part,
                                                   float* residual, bool alone) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float* const mine = residual == nullptr ? nullptr : residual + part.first;
  unsigned largest = 0, found = 0;
  for (int64_t begin = lane; begin - lane < part.count; begin += kAtOnce * kWarp) {
    float x[kAtOnce] = {}, before[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = begin + j * kWarp;
      if (i >= part.count) continue;
      x[j] = part.values[i];
      if (mine != nullptr && !alone) before[j] = mine[i];
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = begin + j * kWarp;
      if (mine != nullptr) x[j] += before[j];
      if (mine != nullptr && i < part.count) mine[i] = x[j];
      const unsigned bits = MagnitudeBits(x[j]);
      largest = max(largest, bits);
      CountMagnitude(scratch, threshold, bits);
      const unsigned all = __ballot_sync(kAllLanes, bits >= threshold);
      const unsigned place = found + __popc(all & ((1u << lane) - 1));
      if (bits >= threshold && place < kMaxCandidates) {
        candidates->values[warp][place] = x[j];
        candidates->at[warp][place] = static_cast<unsigned>(part.first + i);
      }
      found += __popc(all);
    }
  }
  if (lane == 0) candidates->found[warp] = found;
  return largest;
}

// As AccumulatePart, for the whole segment. Returns the threshold.
__device__ __forceinline__ unsigned Accumulate(SelectScratch* scratch, Candidates* candidates,
                                               int64_t n, unsigned keep, const float* elements,
                                               float* residual, bool alone) {
  const unsigned threshold = LikelyThreshold(scratch, n, keep, [&](int64_t i) {
    return residual == nullptr || alone ? elements[i] : residual[i] + elements[i];
  });
  ClearCounts(scratch);
  if (threadIdx.x == 0) scratch->largest = 0;
  __syncthreads();
  unsigned largest =
      AccumulatePart(scratch, candidates, threshold, PartOfWarp(n, elements), residual, alone);
  largest = __reduce_max_sync(kAllLanes, largest);
  if (threadIdx.x % kWarp == 0) atomicMax(&scratch->largest, largest);
  __syncthreads();
  return threshold;
}

struct EncodeScratch {
  SelectScratch select;
  Candidates candidates;
};

// One block per segment. `residual`: null without error feedback.
__global__ void __launch_bounds__(kSelectThreads)
    EncodeKernel(SegmentBatch batch, double density, const float* all_elements, float* all_residual,
                 std::byte* encodings, unsigned* lengths) {
  auto* const scratch = SharedMemory<EncodeScratch>();
  SelectScratch* const select = &scratch->select;
  const SegmentPlace place = batch.places[blockIdx.x];
  const int64_t n = place.elements;
  const unsigned keep = KeptElements(density, n);
  const float* const elements = all_elements + place.first;
  float* const residual = all_residual == nullptr ? nullptr : all_residual + place.first;
  const auto accumulate = [&](bool alone) {
    return Accumulate(select, &scratch->candidates, n, keep, elements, residual, alone);
  };
  unsigned threshold = accumulate(/*alone=*/false);
  if (residual != nullptr && select->largest >= kInfinityBits) {
    threshold = accumulate(/*alone=*/true);
  }
  unsigned length = 0;
  if (select->largest < kInfinityBits) {
    const WarpElements part = PartOfWarp(n, residual == nullptr ? elements : residual);
    WarpElements from = CandidatesOr(part, &scratch->candidates);
    const Cut cut = SelectCut(select, keep, threshold, part, from);
    length = WriteKept(select, n, cut, from, residual,
                       reinterpret_cast<unsigned*>(encodings + place.encoding_at));
  } else if (residual != nullptr) {
    for (int64_t i = threadIdx.x; i < n; i += kSelectThreads) residual[i] = 0.0f;
  }
  if (threadIdx.x == 0) lengths[blockIdx.x] = length;
}

template <DecodeTo kTo>
__device__ __forceinline__ void Place(float* at, float decoded) {
  *at += kTo == DecodeTo::kSubtract ? -decoded : decoded;
}

// 32 of the high bits of an encoding, from `at` on.
struct HighWord {
  int64_t at;      // in the row
  unsigned bits;   // each set bit is an index
  unsigned first;  // number of indices before it
};

// Decodes the indices of a word. False: malformed.
template <DecodeTo kTo>
__device__ __forceinline__ bool DecodeWord(const unsigned* words, const Layout& layout,
                                           HighWord high, int64_t n, float* elements) {
  const auto low_of = [&](unsigned rank) {
    return TakeBits(words, layout.low + rank * int64_t{layout.low_bits}, layout.low_bits);
  };
  bool valid = true;
  for (unsigned rank = high.first; high.bits != 0; high.bits &= high.bits - 1, ++rank) {
    const int64_t place = high.at + __ffs(static_cast<int>(high.bits)) - 1;
    const unsigned low = low_of(rank);
    const int64_t index = (place - rank) << layout.low_bits | low;
    const float value = __uint_as_float(TakeBits(words, layout.values + rank * int64_t{32}, 32));
    // Indices with the same high part are neighbours in the row.
    const bool same_high = rank > 0 && TakeBits(words, layout.high + place - 1, 1) != 0;
    const bool ascends = !same_high || low_of(rank - 1) < low;
    if (ascends && index < n && MagnitudeBits(value) < kInfinityBits) {
      Place<kTo>(elements + index, value);
    } else {
      valid = false;
    }
  }
  return valid;
}

// Decodes `count` indices by all warps of the block, each in a part of the row of high bits. False,
// in some threads: malformed.
template <DecodeTo kTo>
__device__ __forceinline__ bool DecodeKept(SelectScratch* scratch, const unsigned* words,
                                           unsigned count, const Layout& layout, int64_t n,
                                           float* elements) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  constexpr int64_t kAtOnce = 32 * kWarp;  // bits
  const int64_t size =
      (layout.high_bits + kAtOnce * kSelectWarps - 1) / (kAtOnce * kSelectWarps) * kAtOnce;
  const int64_t end = min((warp + 1) * size, layout.high_bits);
  const auto word_at = [&](int64_t at) {
    return at < end ? TakeBits(words, layout.high + at, 32) : 0u;
  };
  unsigned mine = 0;
  for (int64_t at = warp * size + lane * 32; at < end; at += kAtOnce) mine += __popc(word_at(at));
  mine = __reduce_add_sync(kAllLanes, mine);
  if (lane == 0) scratch->of_warp[0][warp] = mine;
  __syncthreads();
  const unsigned of_lane = scratch->of_warp[0][lane];
  if (__reduce_add_sync(kAllLanes, of_lane) != count) return false;
  unsigned first = __reduce_add_sync(kAllLanes, lane < warp ? of_lane : 0);
  bool valid = true;
  for (int64_t at = warp * size; at < end; at += kAtOnce) {
    const unsigned bits = word_at(at + lane * 32);
    unsigned up_to_here = __popc(bits);
    for (int apart = 1; apart < kWarp; apart *= 2) {
      const unsigned further = __shfl_up_sync(kAllLanes, up_to_here, apart);
      if (lane >= apart) up_to_here += further;
    }
    const HighWord high = {at + lane * 32, bits, first + up_to_here - __popc(bits)};
    if (!DecodeWord<kTo>(words, layout, high, n, elements)) valid = false;
    first += __shfl_sync(kAllLanes, up_to_here, kWarp - 1);
  }
  return valid;
}

// One block per segment.
template <DecodeTo kTo>
__global__ void __launch_bounds__(kSelectThreads)
    DecodeKernel(SegmentBatch batch, const std::byte* encodings, const unsigned* lengths,
                 float* all_elements, unsigned* malformed) {
  SelectScratch* const scratch = SharedMemory<SelectScratch>();
  const SegmentPlace place = batch.places[blockIdx.x];
  const int64_t n = place.elements;
  const auto* const words = reinterpret_cast<const unsigned*>(encodings + place.encoding_at);
  float* const elements = all_elements + place.first;
  const unsigned length = lengths[blockIdx.x];
  const unsigned count = length < sizeof(unsigned) ? 0 : words[0];
  const bool possible = length >= sizeof(unsigned) && count <= n;
  if (!possible || LayoutOf(n, count).bytes != length) {
    if (threadIdx.x == 0) malformed[blockIdx.x] = 1;
    return;
  }
  if (kTo == DecodeTo::kStore) {
    for (int64_t i = threadIdx.x; i < n; i += kSelectThreads) elements[i] = 0.0f;
    __syncthreads();
  }
  if (count == 0) return;
  if (!DecodeKept<kTo>(scratch, words, count, LayoutOf(n, count), n, elements)) {
    malformed[blockIdx.x] = 1;
  }
}

absl::Status Encode(const SegmentBatch& batch, double density, const float* elements,
                    float* residual, std::byte* encodings, uint32_t* lengths,
                    const Stream& stream) {
  if (batch.count == 0) return absl::OkStatus();
  return Launch(EncodeKernel,
                {static_cast<unsigned>(batch.count), kSelectThreads, stream, sizeof(EncodeScratch)},
                batch, density, elements, residual, encodings, lengths);
}

}  // namespace

absl::Status EncodeTopK(const SegmentBatch& batch, double density, const float* elements,
                        std::byte* encodings, uint32_t* lengths, const Stream& stream) {
  return Encode(batch, density, elements, nullptr, encodings, lengths, stream);
}

absl::Status EncodeTopKWithResidual(const SegmentBatch& batch, double density,
                                    const float* elements, float* residual, std::byte* encodings,
                                    uint32_t* lengths, const Stream& stream) {
  return Encode(batch, density, elements, residual, encodings, lengths, stream);
}

absl::Status DecodeTopK(const SegmentBatch& batch, const std::byte* encodings,
                        const uint32_t* lengths, DecodeTo to, float* elements, uint32_t* malformed,
                        const Stream& stream) {
  if (batch.count == 0) return absl::OkStatus();
  RETURN_IF_ERROR(kernels::cuda::FillZeroAsync(
      malformed, static_cast<size_t>(batch.count) * sizeof(uint32_t), stream));
  const auto kernel = to == DecodeTo::kStore ? &DecodeKernel<DecodeTo::kStore>
                      : to == DecodeTo::kAdd ? &DecodeKernel<DecodeTo::kAdd>
                                             : &DecodeKernel<DecodeTo::kSubtract>;
  return Launch(kernel,
                {static_cast<unsigned>(batch.count), kSelectThreads, stream, sizeof(SelectScratch)},
                batch, encodings, lengths, elements, malformed);
}

}  // namespace tug::cuda
