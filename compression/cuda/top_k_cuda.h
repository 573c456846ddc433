// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CUDA_TOP_K_CUDA_H_
#define TUG_COMPRESSION_CUDA_TOP_K_CUDA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "compression/cuda/segments_cuda.h"
#include "kernels/cuda/device/device.h"

namespace tug::cuda {

// TopKCodec of compression/sparse/top_k.h on the GPU, with the same bytes; all pointers are to
// device memory. Functions return when the work is queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h). One block per segment: a batch of less than a few hundred
// leaves part of a large GPU idle.

// Sets lengths [batch.count] to the results of TopKCodec::Encode for each segment. Zeros the bytes
// after an encoding, up to a multiple of 4.
absl::Status EncodeTopK(const SegmentBatch& batch, double density, const float* elements,
                        std::byte* encodings, uint32_t* lengths,
                        const kernels::cuda::Stream& stream);

// As above for EncodeWithResidual; `residual` has the layout of `elements`.
absl::Status EncodeTopKWithResidual(const SegmentBatch& batch, double density,
                                    const float* elements, float* residual, std::byte* encodings,
                                    uint32_t* lengths, const kernels::cuda::Stream& stream);

// Sets malformed [batch.count] to 0 where TopKCodec::Decode returns true for the segment's encoding
// of lengths[i] bytes, else to 1. REQUIRES: these bytes, rounded up to a multiple of 4, are
// readable.
absl::Status DecodeTopK(const SegmentBatch& batch, const std::byte* encodings,
                        const uint32_t* lengths, DecodeTo to, float* elements, uint32_t* malformed,
                        const kernels::cuda::Stream& stream);

}  // namespace tug::cuda

#endif  // TUG_COMPRESSION_CUDA_TOP_K_CUDA_H_
