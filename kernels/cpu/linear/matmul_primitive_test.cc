// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linear/matmul_primitive.h"

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"

// linear_test.cc tests the products themselves.

namespace tug::kernels {
namespace {

using Operands = MatMulForm::Operands;

// oneDNN's reference kernel gives the same results but is thousands of times slower.
TEST(MatMulPrimitive, IsNeverOneDnnsReference) {
  for (const auto operands : {Operands::kFloatByTransposed, Operands::kBf16ByPacked}) {
    if (operands != Operands::kFloatByTransposed && !HasBf16Products()) continue;
    for (const bool accumulate : {false, operands == Operands::kBf16ByPacked}) {
      for (const int64_t size : {1, 31, 33, 128, 1023}) {
        for (const MatMulForm& shape :
             {MatMulForm{.m = size, .n = 65, .k = 384}, MatMulForm{.m = 64, .n = size, .k = 33},
              MatMulForm{.m = 128, .n = 192, .k = size}, MatMulForm{.m = 64, .n = 64, .k = 64}}) {
          MatMulForm form = shape;
          form.operands = operands;
          form.accumulate = accumulate;
          EXPECT_FALSE(MatMulPrimitive(form).kernel().starts_with("ref"))
              << "operands " << static_cast<int>(operands) << " m " << form.m << " n " << form.n
              << " k " << form.k;
        }
      }
    }
  }
}

TEST(MatMulPrimitive, MultipliesPackedBf16WithBrgemm) {
  // Without bf16 products, such a primitive must not be requested; linear.h multiplies in FP32
  // (linear_test.cc).
  if (!HasBf16Products()) GTEST_SKIP() << "no bf16 instructions";
  for (const int64_t rows : {1, 17, 64, 128}) {
    const MatMulForm form{.operands = Operands::kBf16ByPacked, .m = rows, .n = 256, .k = 768};
    EXPECT_TRUE(MatMulPrimitive(form).kernel().starts_with("brg:")) << rows;
  }
}

TEST(MatMulPrimitive, IsFoundAgain) {
  const MatMulForm form{.operands = Operands::kFloatByTransposed, .m = 5, .n = 6, .k = 7};
  EXPECT_EQ(&MatMulPrimitive::Of(form), &MatMulPrimitive::Of(form));
}

}  // namespace
}  // namespace tug::kernels
