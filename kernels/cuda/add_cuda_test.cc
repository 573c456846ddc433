// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/add_cuda.h"

#include "gtest/gtest.h"
#include "kernels/add.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename T>
class AddCuda : public CudaTest {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(AddCuda, Types);

TYPED_TEST(AddCuda, HasTheBitsOfTheCpuAtEverySize) {
  for (const int64_t n : kTestSizes) {
    SCOPED_TRACE(n);
    const auto a = As<TypeParam>(RandomFloats(n, 1, 10));
    const auto b = As<TypeParam>(RandomFloats(n, 2));
    std::vector<TypeParam> expected(a.size());
    kernels::Add(a.data(), b.data(), expected.data(), n);
    const OnDevice a_gpu(a, this->stream()), b_gpu(b, this->stream());
    const OnDevice sum(std::vector<TypeParam>(a.size()), this->stream());
    absl::Status status = Add(a_gpu.data(), b_gpu.data(), sum.data(), n, this->stream());
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(sum.Read(), expected);
    status = Add(a_gpu.data(), b_gpu.data(), a_gpu.data(), n, this->stream());  // in place
    ASSERT_TRUE(status.ok()) << status;
    ExpectSameBits(a_gpu.Read(), expected);
  }
}

TYPED_TEST(AddCuda, HasTheSameBitsOffTheBoundariesOfVectors) {
  for (const int64_t n : {1, 33, 1023}) {
    for (const int64_t offset : {1, 3}) {
      SCOPED_TRACE(testing::Message() << n << " from " << offset);
      const auto a = As<TypeParam>(RandomFloats(n + offset, 1, 10));
      const auto b = As<TypeParam>(RandomFloats(n + offset, 2));
      std::vector<TypeParam> expected(a.size() + 1);  // the rest must not change
      kernels::Add(a.data() + offset, b.data() + offset, expected.data() + offset, n);
      const OnDevice a_gpu(a, this->stream()), b_gpu(b, this->stream());
      const OnDevice sum(std::vector<TypeParam>(expected.size()), this->stream());
      const absl::Status status =
          Add(a_gpu.data() + offset, b_gpu.data() + offset, sum.data() + offset, n, this->stream());
      ASSERT_TRUE(status.ok()) << status;
      ExpectSameBits(sum.Read(), expected);
    }
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
