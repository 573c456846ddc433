// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/one_bit_cuda.h"

#include <limits>

#include "compression/cuda/group_kernels.h"
#include "compression/dense/one_bit.h"
#include "kernels/cuda/device/block_reduce.h"

namespace tug::cuda {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int kScaleBytes = sizeof(float);
constexpr int kWord = 64;  // elements per word of signs

// Same arithmetic as one_bit.cc, operation by operation (nvcc -fmad=false): the same bits. The mean
// is summed in 64 places, of which a lane has two, and then by halves, like WarpSum.
struct OneBitFormat {
  static constexpr int kGroup = OneBitCodec::kGroup;
  static constexpr int kPerLane = kGroup / kWarp;
  static constexpr bool kVectors = false;
  static_assert(kWord == 2 * kWarp);

  static __device__ __forceinline__ int64_t Words(int64_t n) { return (n + kWord - 1) / kWord; }
  static __device__ __forceinline__ int64_t Bytes(int64_t n) {
    return (n + kGroup - 1) / kGroup * kScaleBytes + Words(n) * 8;
  }
  // The group's scale; the words of signs follow, each as two of 32 bits, since they lie at 4-byte
  // boundaries.
  static __device__ __forceinline__ unsigned* At(const Group& group) {
    constexpr int kGroupBytes = kScaleBytes + kGroup / 8;
    return reinterpret_cast<unsigned*>(group.encoding + group.begin / kGroup * kGroupBytes);
  }

  template <bool kVector>
  static __device__ __forceinline__ bool EncodeGroup(float (&x)[kPerLane], const Group& group) {
    static_assert(!kVector);
    constexpr float kPart = 1.0f / kGroup;
    float lower = 0, upper = 0;  // the places of this lane and of 32 more
    unsigned signs = 0;          // lane i keeps those of x[i] of all lanes
#pragma unroll
    for (int j = 0; j < kPerLane; j += 2) {
      lower = lower + fabsf(x[j]) * kPart;
      upper = upper + fabsf(x[j + 1]) * kPart;
    }
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const unsigned all = __ballot_sync(kAllLanes, __float_as_int(x[j]) < 0);
      if (LaneIndex() == j) signs = all;
    }
    const float sum = kernels::cuda::WarpSum(lower + upper);
    const bool encoded = sum <= kLargest;
    const float mean = sum * (static_cast<float>(kGroup) / static_cast<float>(group.elements));
    const float scale = mean < kLargest ? mean : kLargest;
    unsigned* const to = At(group);
    if (LaneIndex() < 2 * static_cast<int>(Words(group.elements))) to[1 + LaneIndex()] = signs;
    if (LaneIndex() == kPerLane) to[0] = __float_as_uint(scale);
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) x[j] = x[j] - Decoded(__float_as_uint(x[j]) >> 31, scale);
    return encoded;
  }

  template <bool kVector>
  static __device__ __forceinline__ bool DecodeGroup(const Group& group, float (&x)[kPerLane]) {
    static_assert(!kVector);
    const unsigned* const from = At(group);
    const float scale = __uint_as_float(from[0]);
    unsigned signs = 0;
    if (LaneIndex() < 2 * static_cast<int>(Words(group.elements))) signs = from[1 + LaneIndex()];
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      x[j] = Decoded(__shfl_sync(kAllLanes, signs, j) >> LaneIndex() & 1, scale);
    }
    return scale >= 0.0f && scale <= kLargest;
  }

  static __device__ __forceinline__ float Decoded(unsigned below, float scale) {
    return below != 0 ? -scale : scale;
  }
};

}  // namespace

absl::Status EncodeOneBit(const SegmentBatch& batch, const float* elements, std::byte* encodings,
                          uint32_t* lengths, const Stream& stream) {
  return EncodeGroups<OneBitFormat>(batch, elements, nullptr, encodings, lengths, stream);
}

absl::Status EncodeOneBitWithResidual(const SegmentBatch& batch, const float* elements,
                                      float* residual, std::byte* encodings, uint32_t* lengths,
                                      const Stream& stream) {
  return EncodeGroups<OneBitFormat>(batch, elements, residual, encodings, lengths, stream);
}

absl::Status DecodeOneBit(const SegmentBatch& batch, const std::byte* encodings,
                          const uint32_t* lengths, DecodeTo to, float* elements,
                          uint32_t* malformed, const Stream& stream) {
  return DecodeGroups<OneBitFormat>(batch, encodings, lengths, to, elements, malformed, stream);
}

}  // namespace tug::cuda
