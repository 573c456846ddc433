// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_INT8_CUDA_H_
#define TUG_COMPRESSION_CUDA_INT8_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compression/cuda/segments_cuda.h"
#include "kernels/cuda/device/device.h"

namespace tug::cuda {

// Int8Codec of compression/dense/int8.h on the GPU, with the same bytes; all pointers are to device
// memory. Functions return when the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h).

// Sets lengths [batch.count] to the results of Int8Codec::Encode for each segment.
absl::Status EncodeInt8(const SegmentBatch& batch, const float* elements, std::byte* encodings,
                        uint32_t* lengths, const kernels::cuda::Stream& stream);

// As above for EncodeWithResidual; `residual` has the layout of `elements`.
absl::Status EncodeInt8WithResidual(const SegmentBatch& batch, const float* elements,
                                    float* residual, std::byte* encodings, uint32_t* lengths,
                                    const kernels::cuda::Stream& stream);

// Sets malformed [batch.count] to 0 where Int8Codec::Decode returns true for the segment's encoding
// of lengths[i] bytes, else to 1.
absl::Status DecodeInt8(const SegmentBatch& batch, const std::byte* encodings,
                        const uint32_t* lengths, DecodeTo to, float* elements, uint32_t* malformed,
                        const kernels::cuda::Stream& stream);

// DecodeInt8Weights of compression/dense/int8.h.
absl::Status DecodeInt8Weights(const SegmentBatch& batch, const std::byte* encodings,
                               float* weights, const kernels::cuda::Stream& stream);

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_INT8_CUDA_H_
