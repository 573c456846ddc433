// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_H_
#define TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/device.h"
#include "kernels/matmul.h"

namespace tug::kernels::cuda {

// State for matrix products on the GPU: cuBLASLt's handle, its workspace of 32 MiB, and the
// algorithm for each product so far (types, sizes, strides, alignments), which is the first that
// cuBLASLt's heuristic suggests. The same product has the same bits in every run on the same kind
// of GPU: if an algorithm splits the summed dimension, the parts are FP32 in the workspace and
// added in a second pass, never by atomics or in the type of the result.
//
// Not thread-safe, and for one stream: products share the workspace. Wait for the stream before
// destroying it. Belongs to the device that the thread used when it was created.
class MatMulHandle {
 public:
  // Errors: those of kernels/cuda/device/device.h.
  static absl::StatusOr<MatMulHandle> Create();

  // Scratch for the bias of a fused product, if cuBLASLt cannot use it in place: kBiasBytes, reused
  // by the next such product.
  static constexpr size_t kBiasBytes = 256 << 10;
  void* bias_scratch() const;

  struct State;  // defined in the .cc file
  State& state() const { return *state_; }

 private:
  struct Destroy {
    void operator()(State* state) const;
  };
  explicit MatMulHandle(State* state) : state_(state) {}
  std::unique_ptr<State, Destroy> state_;
};

// The product of kernels/matmul.h, with its shapes and requirements, and with A, B, C in device
// memory. T, C are float, float; Bf16, Bf16; or Bf16, float. Sums are FP32 (floats are not rounded
// to TF32), in an order chosen by cuBLASLt; rounded to C once.
// Fastest with pointers and rows aligned to 16 bytes.
// Returns once the product is queued. Errors: those of kernels/cuda/device/device.h; UNIMPLEMENTED
// (cuBLASLt has no algorithm; nothing is queued).
template <typename T, typename C>
absl::Status MatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args, const Stream& stream);

// Operations on a product before it is stored, in FP32. Operands are in device memory, 16-byte
// aligned (else: UNIMPLEMENTED).
template <typename C>
struct Epilogue {
  const C* bias = nullptr;  // [n], added to every row; or null
  C* pre_gelu = nullptr;    // [m][ldc]: gets the sums, and C gets GELU of them; or null
};

// MatMul with an epilogue, without `accumulate`. UNIMPLEMENTED also if k is 0, or with pre_gelu if
// ldc is no multiple of 8, C is not 16-byte aligned or C is not Bf16.
template <typename T, typename C>
absl::Status FusedMatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args,
                         const Epilogue<C>& epilogue, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_TOOLKIT_MATMUL_CUDA_H_
