// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_CUDA_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_CUDA_H_

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/cuda/attention/attention_backward_plan.h"
#include "kernels/cuda/attention/attention_head_cuda.h"

namespace tug::kernels::cuda {

// The tensor-core path of kernels/cuda/attention/attention_cuda.h, for its .cu files.
// REQUIRES: call.head_dim is a multiple of 8, at most 128; strides are multiples of 8; pointers are
// 16-byte aligned; no size is 0.
absl::Status MmaAttentionForward(const AttentionCall& call, const AttentionForwardArgs<Bf16>& args,
                                 const Stream& stream);
// Shared memory of a block of the one-pass kernel.
size_t OnePassSharedBytes(const AttentionCall& call);
// Kernels that follow row_dots in the backward pass. REQUIRES: `plan` was made for the call's shape
// and has one_pass.
absl::Status OnePassAttentionBackward(const AttentionCall& call, const AttentionBackwardPlan& plan,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream);
absl::Status TwoPassAttentionBackward(const AttentionCall& call,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_CUDA_H_
