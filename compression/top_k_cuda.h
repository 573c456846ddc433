#ifndef TUG_COMPRESSION_TOP_K_CUDA_H_
#define TUG_COMPRESSION_TOP_K_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compression/segments_cuda.h"
#include "kernels/device.h"

namespace tug::cuda {

// TopKCodec of compression/top_k.h on the GPU, with its bytes; all pointers to device memory. They
// return when the work is queued. Errors: those of Launch (kernels/cuda_language.h). A block takes
// a segment: a batch of less than a few hundred leaves a large GPU idle in part.

// lengths [batch.count] become what TopKCodec::Encode returns of each segment. Bytes behind that,
// up to a multiple of 4, become zeros.
absl::Status EncodeTopK(const SegmentBatch& batch, double density, const float* elements,
                        std::byte* encodings, uint32_t* lengths,
                        const kernels::cuda::Stream& stream);

// The same of EncodeWithResidual; `residual` lies as `elements`.
absl::Status EncodeTopKWithResidual(const SegmentBatch& batch, double density,
                                    const float* elements, float* residual, std::byte* encodings,
                                    uint32_t* lengths, const kernels::cuda::Stream& stream);

// malformed [batch.count] become 0 where TopKCodec::Decode returns true of the segment's encoding
// of lengths[i] bytes, else 1. REQUIRES: so many bytes, rounded up to a multiple of 4, are there.
absl::Status DecodeTopK(const SegmentBatch& batch, const std::byte* encodings,
                        const uint32_t* lengths, DecodeTo to, float* elements, uint32_t* malformed,
                        const kernels::cuda::Stream& stream);

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_TOP_K_CUDA_H_
