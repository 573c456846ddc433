// SPDX-License-Identifier: Apache-2.0
#include "compression/cuda/int8_cuda.h"

#include <limits>

#include "compression/cuda/group_kernels.h"
#include "compression/dense/int8.h"

namespace tug::cuda {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallestScale = std::numeric_limits<float>::min();
constexpr float kLargestScale = 0x1.020406p+121f;  // the largest whose 127-fold is finite
constexpr int64_t kScaleBytes = sizeof(float);
// Added to a number below 2^22, it leaves the nearest whole number, ties to even, in the low bits.
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
constexpr unsigned kNanBits = 0x7FC00000;

// Same arithmetic as int8.cc, operation by operation (nvcc -fmad=false): the same bits.
struct Int8Format {
  static constexpr int kGroup = static_cast<int>(kInt8Group);
  static constexpr int kPerLane = kGroup / kWarp;
  static constexpr bool kVectors = true;

  static __device__ __forceinline__ int64_t ScalesBytes(int64_t n) {
    return (n + kGroup - 1) / kGroup * kScaleBytes;
  }
  static __device__ __forceinline__ int64_t Bytes(int64_t n) { return n + ScalesBytes(n); }

  static __device__ __forceinline__ float* ScaleOf(const Group& group) {
    return reinterpret_cast<float*>(group.encoding + group.begin / kGroup * kScaleBytes);
  }
  static __device__ __forceinline__ std::byte* BytesOf(const Group& group) {
    return group.encoding + ScalesBytes(group.segment_elements) + group.begin;
  }

  template <bool kVector>
  static __device__ __forceinline__ bool EncodeGroup(float (&x)[kPerLane], const Group& group) {
    unsigned bits = 0;  // of the largest magnitude; larger if one is not finite
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) bits = max(bits, __float_as_uint(x[j]) & 0x7FFFFFFFu);
    const float magnitude = __uint_as_float(__reduce_max_sync(kAllLanes, bits));
    const bool finite = magnitude <= kLargest;
    const float unbounded = magnitude / 127.0f;
    const float scale = unbounded < kSmallestScale  ? kSmallestScale
                        : unbounded > kLargestScale ? kLargestScale
                                                    : unbounded;
    if (LaneIndex() == 0) *ScaleOf(group) = finite ? scale : __uint_as_float(kNanBits);
    const float inverse = 1.0f / scale;
    unsigned bytes[kPerLane];
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const float shifted = x[j] * inverse + kRound;
      bytes[j] = finite ? __float_as_uint(shifted) & 0xFF : 0;
      x[j] = x[j] - (shifted - kRound) * scale;
    }
    Store<kVector>(bytes, group);
    return finite;
  }

  template <bool kVector>
  static __device__ __forceinline__ void Store(const unsigned (&bytes)[kPerLane],
                                               const Group& group) {
    std::byte* const to = BytesOf(group);
#pragma unroll
    for (int j = 0; j < kPerLane; j += kVector ? 4 : 1) {
      const int place = PlaceOf<Int8Format, kVector>(j);
      if constexpr (kVector) {
        *reinterpret_cast<unsigned*>(to + place) =
            bytes[j] | bytes[j + 1] << 8 | bytes[j + 2] << 16 | bytes[j + 3] << 24;
      } else if (place < group.elements) {
        to[place] = static_cast<std::byte>(bytes[j]);
      }
    }
  }

  template <bool kVector>
  static __device__ __forceinline__ bool DecodeGroup(const Group& group, float (&x)[kPerLane]) {
    const float scale = *ScaleOf(group);
    const std::byte* const from = BytesOf(group);
#pragma unroll
    for (int j = 0; j < kPerLane; j += kVector ? 4 : 1) {
      const int place = PlaceOf<Int8Format, kVector>(j);
      if constexpr (kVector) {
        const unsigned four = *reinterpret_cast<const unsigned*>(from + place);
#pragma unroll
        for (int i = 0; i < 4; ++i) x[j + i] = Decoded(four >> 8 * i, scale);
      } else {
        x[j] = place < group.elements ? Decoded(static_cast<unsigned>(from[place]), scale) : 0.0f;
      }
    }
    return scale >= kSmallestScale && scale <= kLargestScale;
  }

  // Decodes the lowest byte.
  static __device__ __forceinline__ float Decoded(unsigned byte, float scale) {
    const int whole = static_cast<int8_t>(byte & 0xFF);
    return static_cast<float>(whole < -127 ? -127 : whole) * scale;
  }
};

}  // namespace

absl::Status EncodeInt8(const SegmentBatch& batch, const float* elements, std::byte* encodings,
                        uint32_t* lengths, const Stream& stream) {
  return EncodeGroups<Int8Format>(batch, elements, nullptr, encodings, lengths, stream);
}

absl::Status EncodeInt8WithResidual(const SegmentBatch& batch, const float* elements,
                                    float* residual, std::byte* encodings, uint32_t* lengths,
                                    const Stream& stream) {
  return EncodeGroups<Int8Format>(batch, elements, residual, encodings, lengths, stream);
}

absl::Status DecodeInt8(const SegmentBatch& batch, const std::byte* encodings,
                        const uint32_t* lengths, DecodeTo to, float* elements, uint32_t* malformed,
                        const Stream& stream) {
  return DecodeGroups<Int8Format>(batch, encodings, lengths, to, elements, malformed, stream);
}

absl::Status DecodeInt8Weights(const SegmentBatch& batch, const std::byte* encodings,
                               float* weights, const Stream& stream) {
  return DecodeGroups<Int8Format>(batch, encodings, nullptr, DecodeTo::kStore, weights, nullptr,
                                  stream);
}

}  // namespace tug::cuda
