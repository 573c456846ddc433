#include "kernels/add_cuda.h"

#include "gtest/gtest.h"
#include "kernels/add.h"
#include "kernels/cuda_test_support.h"
#include "kernels/kernel_test_support.h"

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

}  // namespace
}  // namespace tug::kernels::cuda
