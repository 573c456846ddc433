// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_GROUP_KERNELS_H_
#define TUG_COMPRESSION_CUDA_GROUP_KERNELS_H_

// Kernels over segments whose elements are encoded group by group, one warp per group. For .cu
// files.
//
// A Format has groups of kGroup elements, of which a lane has kPerLane in `x`, with zeros after the
// last element. kVectors: a lane's elements lie 4 by 4, lane after lane, where 16-byte boundaries
// allow; else 32 apart, from the lane's number on.
//   static int64_t Bytes(int64_t n)   // of the encoding of a segment of n
//   // Encodes a group, of n elements from `begin` on; x becomes x less what the bytes decode to.
//   // False: it has no encoding. All lanes return the same.
//   template <bool kVector> static bool EncodeGroup(float (&x)[kPerLane], const Group&)
//   // x becomes what the bytes decode to. False, in any lane: they are malformed.
//   template <bool kVector> static bool DecodeGroup(const Group&, float (&x)[kPerLane])

#include "base/status_macros.h"
#include "compression/codec.h"
#include "compression/cuda/segments_cuda.h"
#include "kernels/cuda/device/cuda_language.h"

namespace tug::cuda {

using kernels::cuda::kAllLanes;
using kernels::cuda::kWarp;
using kernels::cuda::Launch;
using kernels::cuda::Stream;

inline constexpr int kGroupThreads = 256;
inline constexpr int kGroupWarps = kGroupThreads / kWarp;

// States in lengths[] while a batch is encoded: which part of a segment has no encoding.
inline constexpr unsigned kNoSum = 1;       // the elements, or their sum with the residual
inline constexpr unsigned kNoElements = 2;  // the elements alone, which are tried second

// A group of a segment.
struct Group {
  std::byte* encoding;       // of the segment
  int64_t segment_elements;  // in all
  int64_t begin;             // its first element
  int elements;
};

__device__ __forceinline__ int LaneIndex() { return static_cast<int>(threadIdx.x) % kWarp; }

template <typename Format, bool kVector>
__device__ __forceinline__ int PlaceOf(int j) {
  return kVector ? j / 4 * 4 * kWarp + 4 * LaneIndex() + j % 4 : j * kWarp + LaneIndex();
}

template <typename Format, bool kVector>
__device__ __forceinline__ void LoadGroup(const float* from, int n, float (&x)[Format::kPerLane]) {
#pragma unroll
  for (int j = 0; j < Format::kPerLane; j += kVector ? 4 : 1) {
    const int place = PlaceOf<Format, kVector>(j);
    if constexpr (kVector) {
      const float4 four = *reinterpret_cast<const float4*>(from + place);
      x[j] = four.x;
      x[j + 1] = four.y;
      x[j + 2] = four.z;
      x[j + 3] = four.w;
    } else {
      x[j] = place < n ? from[place] : 0.0f;
    }
  }
}

template <typename Format, bool kVector>
__device__ __forceinline__ void StoreGroup(const float (&x)[Format::kPerLane], int n, float* to) {
#pragma unroll
  for (int j = 0; j < Format::kPerLane; j += kVector ? 4 : 1) {
    const int place = PlaceOf<Format, kVector>(j);
    if constexpr (kVector) {
      *reinterpret_cast<float4*>(to + place) = make_float4(x[j], x[j + 1], x[j + 2], x[j + 3]);
    } else if (place < n) {
      to[place] = x[j];
    }
  }
}

__device__ __forceinline__ bool AtVectorBoundary(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0;
}

// Calls act(group) for this warp's groups of the segment.
template <typename Format, typename Act>
__device__ __forceinline__ void ForEachGroup(const SegmentPlace& place, std::byte* encodings,
                                             Act act) {
  const int64_t step = int64_t{gridDim.x} * kGroupWarps * Format::kGroup;
  const int64_t warp = int64_t{blockIdx.x} * kGroupWarps + threadIdx.x / kWarp;
  for (int64_t at = warp * Format::kGroup; at < place.elements; at += step) {
    const int64_t left = place.elements - at;
    act(Group{encodings + place.encoding_at, place.elements, at,
              static_cast<int>(left < Format::kGroup ? left : Format::kGroup)});
  }
}

// Encodes a group. `residual`: null without error feedback.
template <typename Format, bool kVector>
__device__ __forceinline__ bool EncodeOne(const Group& group, const float* elements,
                                          float* residual, bool with_residual) {
  float x[Format::kPerLane];
  LoadGroup<Format, kVector>(elements, group.elements, x);
  if (residual != nullptr) {
    float old[Format::kPerLane] = {};
    if (with_residual) LoadGroup<Format, kVector>(residual, group.elements, old);
#pragma unroll
    for (int j = 0; j < Format::kPerLane; ++j) x[j] = old[j] + x[j];
  }
  const bool encoded = Format::template EncodeGroup<kVector>(x, group);
  if (residual != nullptr) StoreGroup<Format, kVector>(x, group.elements, residual);
  return encoded;
}

// Encodes segment blockIdx.y. `again`: only if its sum with the residual has no encoding, and
// without the residual, which the first run has overwritten.
template <typename Format>
__global__ void __launch_bounds__(kGroupThreads)
    EncodeGroupsKernel(SegmentBatch batch, const float* elements, float* residual,
                       std::byte* encodings, unsigned* states, bool again) {
  const SegmentPlace place = batch.places[blockIdx.y];
  if (again && (states[blockIdx.y] & kNoSum) == 0) return;
  ForEachGroup<Format>(place, encodings, [&](const Group& group) {
    const float* const from = elements + place.first + group.begin;
    float* const kept = residual == nullptr ? nullptr : residual + place.first + group.begin;
    bool encoded = false;
    if (Format::kVectors && group.elements == Format::kGroup && AtVectorBoundary(from) &&
        AtVectorBoundary(kept)) {
      encoded = EncodeOne<Format, Format::kVectors>(group, from, kept, !again);
    } else {
      encoded = EncodeOne<Format, false>(group, from, kept, !again);
    }
    if (!encoded && LaneIndex() == 0) {
      atomicOr(states + blockIdx.y, again ? kNoElements : kNoSum);
    }
  });
}

// One block per segment: turns states into lengths, and zeros the residuals of segments without an
// encoding.
template <typename Format>
__global__ void __launch_bounds__(kGroupThreads)
    FinishGroupsKernel(SegmentBatch batch, float* residual, unsigned* states) {
  const SegmentPlace place = batch.places[blockIdx.x];
  const bool none = (states[blockIdx.x] & (residual == nullptr ? kNoSum : kNoElements)) != 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    states[blockIdx.x] = none ? 0 : static_cast<unsigned>(Format::Bytes(place.elements));
  }
  if (!none || residual == nullptr) return;
  for (int64_t i = threadIdx.x; i < place.elements; i += kGroupThreads) {
    residual[place.first + i] = 0.0f;
  }
}

template <typename Format, bool kVector, DecodeTo kTo>
__device__ __forceinline__ bool DecodeOne(const Group& group, float* elements) {
  float decoded[Format::kPerLane];
  const bool valid = Format::template DecodeGroup<kVector>(group, decoded);
  if constexpr (kTo != DecodeTo::kStore) {
    float old[Format::kPerLane];
    LoadGroup<Format, kVector>(elements, group.elements, old);
#pragma unroll
    for (int j = 0; j < Format::kPerLane; ++j) {
      decoded[j] = kTo == DecodeTo::kAdd ? old[j] + decoded[j] : old[j] - decoded[j];
    }
  }
  StoreGroup<Format, kVector>(decoded, group.elements, elements);
  return valid;
}

// `lengths` and `malformed`: null if lengths are known and scales may have any value.
template <typename Format, DecodeTo kTo>
__global__ void __launch_bounds__(kGroupThreads)
    DecodeGroupsKernel(SegmentBatch batch, std::byte* encodings, const unsigned* lengths,
                       float* elements, unsigned* malformed) {
  const SegmentPlace place = batch.places[blockIdx.y];
  if (lengths != nullptr && lengths[blockIdx.y] != Format::Bytes(place.elements)) {
    if (threadIdx.x == 0) atomicOr(malformed + blockIdx.y, 1u);
    return;
  }
  ForEachGroup<Format>(place, encodings, [&](const Group& group) {
    float* const to = elements + place.first + group.begin;
    bool valid = false;
    if (Format::kVectors && group.elements == Format::kGroup && AtVectorBoundary(to)) {
      valid = DecodeOne<Format, Format::kVectors, kTo>(group, to);
    } else {
      valid = DecodeOne<Format, false, kTo>(group, to);
    }
    if (!valid && malformed != nullptr) atomicOr(malformed + blockIdx.y, 1u);
  });
}

// Blocks for the groups of the largest segment, by segments: at most about `for_each` per
// multiprocessor of a large GPU.
template <typename Format>
dim3 GroupGrid(const SegmentBatch& batch, int64_t for_each) {
  constexpr int64_t kElements = int64_t{kGroupWarps} * Format::kGroup;
  const int64_t all = (batch.max_elements + kElements - 1) / kElements;
  const int64_t most = (132 * for_each + batch.count - 1) / batch.count;
  return dim3(static_cast<unsigned>(all < most ? all : most), static_cast<unsigned>(batch.count));
}
// Many blocks balance the load; few suffice where segments rarely have work.
inline constexpr int64_t kManyBlocks = 64;
inline constexpr int64_t kFewBlocks = 4;

// SegmentCodec::Encode, or with a residual EncodeWithResidual.
template <typename Format>
absl::Status EncodeGroups(const SegmentBatch& batch, const float* elements, float* residual,
                          std::byte* encodings, uint32_t* lengths, const Stream& stream) {
  if (batch.count == 0) return absl::OkStatus();
  RETURN_IF_ERROR(kernels::cuda::FillZeroAsync(
      lengths, static_cast<size_t>(batch.count) * sizeof(uint32_t), stream));
  RETURN_IF_ERROR(Launch(EncodeGroupsKernel<Format>,
                         {GroupGrid<Format>(batch, kManyBlocks), kGroupThreads, stream}, batch,
                         elements, residual, encodings, lengths, /*again=*/false));
  if (residual != nullptr) {
    RETURN_IF_ERROR(Launch(EncodeGroupsKernel<Format>,
                           {GroupGrid<Format>(batch, kFewBlocks), kGroupThreads, stream}, batch,
                           elements, residual, encodings, lengths, /*again=*/true));
  }
  return Launch(FinishGroupsKernel<Format>,
                {static_cast<unsigned>(batch.count), kGroupThreads, stream}, batch, residual,
                lengths);
}

// SegmentCodec::Decode.
template <typename Format>
absl::Status DecodeGroups(const SegmentBatch& batch, const std::byte* encodings,
                          const uint32_t* lengths, DecodeTo to, float* elements,
                          uint32_t* malformed, const Stream& stream) {
  if (batch.count == 0) return absl::OkStatus();
  if (malformed != nullptr) {
    RETURN_IF_ERROR(kernels::cuda::FillZeroAsync(
        malformed, static_cast<size_t>(batch.count) * sizeof(uint32_t), stream));
  }
  const auto kernel = to == DecodeTo::kStore ? &DecodeGroupsKernel<Format, DecodeTo::kStore>
                      : to == DecodeTo::kAdd ? &DecodeGroupsKernel<Format, DecodeTo::kAdd>
                                             : &DecodeGroupsKernel<Format, DecodeTo::kSubtract>;
  return Launch(kernel, {GroupGrid<Format>(batch, kManyBlocks), kGroupThreads, stream}, batch,
                const_cast<std::byte*>(encodings), lengths, elements, malformed);
}

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_GROUP_KERNELS_H_
