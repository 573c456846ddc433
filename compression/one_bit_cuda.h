#ifndef TUG_COMPRESSION_ONE_BIT_CUDA_H_
#define TUG_COMPRESSION_ONE_BIT_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compression/segments_cuda.h"
#include "kernels/device.h"

namespace tug::cuda {

// OneBitCodec of compression/one_bit.h on the GPU, with its bytes (those that mean nothing too);
// all pointers to device memory. They return when the work is queued. Errors: those of Launch
// (kernels/cuda_language.h).

// lengths [batch.count] become what OneBitCodec::Encode returns of each segment.
absl::Status EncodeOneBit(const SegmentBatch& batch, const float* elements, std::byte* encodings,
                          uint32_t* lengths, const kernels::cuda::Stream& stream);

// The same of EncodeWithResidual; `residual` lies as `elements`.
absl::Status EncodeOneBitWithResidual(const SegmentBatch& batch, const float* elements,
                                      float* residual, std::byte* encodings, uint32_t* lengths,
                                      const kernels::cuda::Stream& stream);

// malformed [batch.count] become 0 where OneBitCodec::Decode returns true of the segment's encoding
// of lengths[i] bytes, else 1.
absl::Status DecodeOneBit(const SegmentBatch& batch, const std::byte* encodings,
                          const uint32_t* lengths, DecodeTo to, float* elements,
                          uint32_t* malformed, const kernels::cuda::Stream& stream);

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_ONE_BIT_CUDA_H_
