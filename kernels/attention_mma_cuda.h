#ifndef TUG_KERNELS_ATTENTION_MMA_CUDA_H_
#define TUG_KERNELS_ATTENTION_MMA_CUDA_H_

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/attention_backward_plan.h"
#include "kernels/attention_head_cuda.h"
#include "kernels/bf16.h"

namespace tug::kernels::cuda {

// The part of kernels/attention_cuda.h that tensor cores do, for its .cu files.
// REQUIRES: call.head_dim is a multiple of 8, 128 at most, strides are multiples of 8, pointers at
// 16 bytes; no size is 0.
absl::Status MmaAttentionForward(const AttentionCall& call, const AttentionForwardArgs<Bf16>& args,
                                 const Stream& stream);
// Of a block of one pass.
size_t OnePassSharedBytes(const AttentionCall& call);
// What follows row_dots in the backward pass. `plan`: of the call's shape, one_pass.
absl::Status OnePassAttentionBackward(const AttentionCall& call, const AttentionBackwardPlan& plan,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream);
absl::Status TwoPassAttentionBackward(const AttentionCall& call,
                                      const AttentionBackwardArgs<Bf16>& args,
                                      const float* row_dots, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_ATTENTION_MMA_CUDA_H_
