// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/device/tensor_core_test_kernels.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

using TensorCore = CudaTest;

// Product of matrices [rows][16] and [16][columns].
std::vector<double> Product(const std::vector<Bf16>& a, const std::vector<Bf16>& b, int columns) {
  std::vector<double> c(16 * columns, 0.0);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < columns; ++column) {
      for (int k = 0; k < 16; ++k) {
        c[row * columns + column] += ToDouble(a[row * 16 + k]) * ToDouble(b[k * columns + column]);
      }
    }
  }
  return c;
}

TEST_F(TensorCore, MultipliesWhatItsLoadsBring) {
  const auto a = As<Bf16>(RandomFloats(16 * 16, 1));
  const auto b = As<Bf16>(RandomFloats(16 * 8, 2));
  std::vector<Bf16> b_transposed(8 * 16);
  for (int i = 0; i < 16 * 8; ++i) b_transposed[i % 8 * 16 + i / 8] = b[i];
  const OnDevice a_gpu(a, stream()), b_gpu(b, stream()), b_transposed_gpu(b_transposed, stream());
  const OnDevice c(std::vector<float>(2 * 16 * 8), stream());
  const absl::Status status =
      MultiplyByFragments(a_gpu.data(), b_gpu.data(), b_transposed_gpu.data(), c.data(), stream());
  ASSERT_TRUE(status.ok()) << status;
  auto expected = Product(a, b, 8);
  const auto once = expected;
  expected.insert(expected.end(), once.begin(), once.end());
  ExpectClose(c.Read(), expected, 4e-6, 1e-6);
}

TEST_F(TensorCore, MultipliesWhatOneTransposedLoadBrings) {
  const auto a = As<Bf16>(RandomFloats(16 * 16, 3));
  const OnDevice a_gpu(a, stream());
  const OnDevice squared(std::vector<float>(16 * 16), stream());
  const absl::Status status = SquareByFragments(a_gpu.data(), squared.data(), stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectClose(squared.Read(), Product(a, a, 16), 4e-6, 1e-6);
}

TEST_F(TensorCore, CopiesGoOnByThemselvesAndFillWithZeros) {
  for (const int n : {1, 31, 32, 33, 255, 256, 257, 511}) {
    SCOPED_TRACE(n);
    std::vector<float> in = RandomFloats(n, 4);
    const OnDevice in_gpu(in, stream()), out(std::vector<float>(512), stream());
    const absl::Status status = CopyThroughShared(n, in_gpu.data(), out.data(), stream());
    ASSERT_TRUE(status.ok()) << status;
    in.resize(512, 0.0f);
    ExpectSameBits(out.Read(), in);
  }
}

TEST_F(TensorCore, PacksTheFirstIntoTheLowerHalf) {
  const auto x = RandomFloats(64, 5);
  const OnDevice x_gpu(x, stream());
  const OnDevice out(std::vector<Bf16>(64), stream());
  const absl::Status status = PackPairs(x_gpu.data(), out.data(), stream());
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameBits(out.Read(), As<Bf16>(x));
}

}  // namespace
}  // namespace tug::kernels::cuda
