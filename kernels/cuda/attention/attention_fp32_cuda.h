// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_FP32_CUDA_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_FP32_CUDA_H_

#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/cuda/attention/attention_head_cuda.h"

namespace tug::kernels::cuda {

// The FP32 path of kernels/cuda/attention/attention_cuda.h, for its .cu files. T is float or Bf16.
// REQUIRES: head_dim is in [1, 128]; no size is 0.
template <typename T>
absl::Status Fp32AttentionForward(const AttentionCall& call, const AttentionForwardArgs<T>& args,
                                  const Stream& stream);
// Second and third kernel of the backward pass.
template <typename T>
absl::Status Fp32AttentionBackward(const AttentionCall& call, const AttentionBackwardArgs<T>& args,
                                   const float* row_dots, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_FP32_CUDA_H_
