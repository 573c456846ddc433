#ifndef TUG_KERNELS_MATMUL_CUDA_H_
#define TUG_KERNELS_MATMUL_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/bf16.h"
#include "kernels/device.h"
#include "kernels/matmul.h"

namespace tug::kernels::cuda {

// What matrix products on the GPU need: cuBLASLt's handle, its workspace of 32 MiB, and the
// algorithm chosen for every product asked for so far (types, sizes, strides, boundaries), which is
// the first that cuBLASLt's heuristic names. The same product has the same bits at every run on the
// same kind of GPU: where an algorithm cuts the dimension that is summed, its parts are FP32 in the
// workspace and added in a second pass, never by atomics nor in the type of the result.
//
// Not thread-safe, and for one stream: products share the workspace. Wait for the stream before it
// goes away. Belongs to the device that the thread used when it was made.
class MatMulHandle {
 public:
  // Errors: those of kernels/device.h.
  static absl::StatusOr<MatMulHandle> Create();

  // For the bias of a fused product, where it is not as cuBLASLt takes it: kBiasBytes, which the
  // next such product uses again.
  static constexpr size_t kBiasBytes = 256 << 10;
  void* bias_scratch() const;

  struct State;  // of the .cc file
  State& state() const { return *state_; }

 private:
  struct Destroy {
    void operator()(State* state) const;
  };
  explicit MatMulHandle(State* state) : state_(state) {}
  std::unique_ptr<State, Destroy> state_;
};

// The product of kernels/matmul.h, whose shapes and requirements it has, with A, B, C in device
// memory. T, C are float, float; Bf16, Bf16; or Bf16, float. Sums are FP32 (floats are not rounded
// to TF32), in an order of cuBLASLt's own; rounded to C once.
// Fastest where pointers lie at boundaries of 16 bytes, and rows are a multiple of that.
// Returns when the product is queued. Errors: those of kernels/device.h; UNIMPLEMENTED (cuBLASLt
// has no algorithm), and then nothing is queued.
template <typename T, typename C>
absl::Status MatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args, const Stream& stream);

// What becomes of a product before it is stored, in FP32. In device memory, at boundaries of 16
// bytes (else: UNIMPLEMENTED).
template <typename C>
struct Epilogue {
  const C* bias = nullptr;  // [n], added to every row; or null
  C* pre_gelu = nullptr;    // [m][ldc]: gets what C would, and C gets GELU of it; or null
};

// As MatMul without `accumulate` and with an epilogue. UNIMPLEMENTED also where k is 0, or with
// pre_gelu where ldc is no multiple of 8 or C is not Bf16.
template <typename T, typename C>
absl::Status FusedMatMul(MatMulHandle& handle, const MatMulArgs<T, C>& args,
                         const Epilogue<C>& epilogue, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_MATMUL_CUDA_H_
