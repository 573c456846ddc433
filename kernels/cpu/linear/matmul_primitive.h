// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CPU_LINEAR_MATMUL_PRIMITIVE_H_
#define TUG_KERNELS_CPU_LINEAR_MATMUL_PRIMITIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/matmul.h"

namespace tug::kernels {

// Products that dnnl_sgemm does not offer: of bf16 and of packed matrices. For the .cc files of
// linear.h.

// Whether this machine multiplies bf16 in hardware (avx512_bf16 or AMX). On others oneDNN has no
// bf16 products, or ones slower than FP32's.
bool HasBf16Products();

// C = A B, or with `accumulate` C += A B, on one thread. C and the sums are FP32.
// Rows are contiguous in every matrix: oneDNN has fast kernels for such matrices only.
struct MatMulForm {
  enum class Operands : uint8_t {
    kFloatByTransposed,  // FP32. A is [m][k]; B is stored [n][k]; C is [m][n]
    kBf16ByPacked,       // bf16. A is [m][k]; B is packed (pack_bf16.h); C is [m][n]
  };
  Operands operands;
  bool accumulate = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;

  auto operator<=>(const MatMulForm&) const = default;
};

// A product compiled by oneDNN. Not thread-safe: each thread has its own.
class MatMulPrimitive {
 public:
  // The calling thread's primitive of a form, made on first use and cached; valid until the
  // thread's next call. REQUIRES: m, n, k >= 1; HasBf16Products() if operands are bf16.
  static MatMulPrimitive& Of(const MatMulForm& form);

  explicit MatMulPrimitive(const MatMulForm& form);
  ~MatMulPrimitive();

  // Computes the product on the calling thread alone.
  void Run(const void* a, const void* b, float* c);

  // oneDNN's name of the kernel it chose, e.g. "brg:avx512_core_bf16".
  const std::string& kernel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_CPU_LINEAR_MATMUL_PRIMITIVE_H_
