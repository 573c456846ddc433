// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_ONE_BIT_CUDA_H_
#define TUG_COMPRESSION_CUDA_ONE_BIT_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compression/cuda/segments_cuda.h"
#include "kernels/cuda/device/device.h"

namespace tug::cuda {

// OneBitCodec of compression/dense/one_bit.h on the GPU, with the same bytes (unused ones too); all
// pointers are to device memory. Functions return when the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h).

// Sets lengths [batch.count] to the results of OneBitCodec::Encode for each segment.
absl::Status EncodeOneBit(const SegmentBatch& batch, const float* elements, std::byte* encodings,
                          uint32_t* lengths, const kernels::cuda::Stream& stream);

// As above for EncodeWithResidual; `residual` has the layout of `elements`.
absl::Status EncodeOneBitWithResidual(const SegmentBatch& batch, const float* elements,
                                      float* residual, std::byte* encodings, uint32_t* lengths,
                                      const kernels::cuda::Stream& stream);

// Sets malformed [batch.count] to 0 where OneBitCodec::Decode returns true for the segment's
// encoding of lengths[i] bytes, else to 1.
absl::Status DecodeOneBit(const SegmentBatch& batch, const std::byte* encodings,
                          const uint32_t* lengths, DecodeTo to, float* elements,
                          uint32_t* malformed, const kernels::cuda::Stream& stream);

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_ONE_BIT_CUDA_H_
