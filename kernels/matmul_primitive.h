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

class MatMulPrimitive {
 public:
  // The primitive of a form, made when the calling thread first asks for it, then found among the
  // ones that it used lately. REQUIRES: m, n, k >= 1; HasBf16Products() where operands are bf16.
  static std::shared_ptr<const MatMulPrimitive> Find(const MatMulForm& form);

  explicit MatMulPrimitive(const MatMulForm& form);
  ~MatMulPrimitive();

  // The product, on the calling thread alone. Thread-safe.
  void Run(const void* a, const void* b, float* c) const;

  // What oneDNN calls the kernel it chose, "brg:avx512_core_bf16" say.
  const std::string& kernel() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_MATMUL_PRIMITIVE_H_
