#ifndef TUG_KERNELS_MATMUL_PRIMITIVE_H_
#define TUG_KERNELS_MATMUL_PRIMITIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/matmul.h"

namespace tug::kernels {

// What dnnl_sgemm cannot do: products of bf16 and of packed matrices. For the .cc files of
// linear.h.

// Whether this machine multiplies bf16 in hardware (avx512_bf16 or AMX). Elsewhere oneDNN has no
// such products, or ones slower than FP32's.
bool HasBf16Products();

// C = A B, or with `accumulate` C += A B, on one thread. C is FP32, as are the sums.
// No matrix has gaps between its rows: oneDNN has its fast kernels for such ones only.
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

// A product that oneDNN has compiled, one thread's own: not thread-safe.
class MatMulPrimitive {
 public:
  // The calling thread's primitive of a form, made when the thread first asks for it, then found
  // among the ones that it used lately; valid until the thread asks again. REQUIRES: m, n, k >= 1;
  // HasBf16Products() where operands are bf16.
  static MatMulPrimitive& Of(const MatMulForm& form);

  explicit MatMulPrimitive(const MatMulForm& form);
  ~MatMulPrimitive();

  // The product, on the calling thread alone.
  void Run(const void* a, const void* b, float* c);

  // What oneDNN calls the kernel it chose, "brg:avx512_core_bf16" say.
  const std::string& kernel() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_PRIMITIVE_H_
