#include "kernels/bias_cuda.h"

#include "gtest/gtest.h"
#include "kernels/bias_ref.h"
#include "kernels/cuda_test_support.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename T>
class BiasCuda : public CudaTest {
 protected:
  std::vector<float> RunKernel(int64_t rows, int64_t width) {
    const OnDevice dbias(RandomFloats(width, 2), this->stream());
    const OnDevice dy(As<T>(RandomFloats(rows * width, 4)), this->stream());
    const absl::Status status = BiasGradient(rows, width, dy.data(), dbias.data(), this->stream());
    EXPECT_TRUE(status.ok()) << status;
    return dbias.Read();
  }

  void ExpectMatchesReference(int64_t rows, int64_t width) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    auto dbias = ToDouble(RandomFloats(width, 2));
    const auto dy = ToDouble(As<T>(RandomFloats(rows * width, 4)));
    BiasGradientRef<double>(rows, width, dy.data(), dbias.data());
    const auto once = RunKernel(rows, width);
    ExpectClose(once, dbias, 2e-6 + 1e-7 * static_cast<double>(rows) / 8, 1e-6);
    ExpectSameBits(RunKernel(rows, width), once);
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(BiasCuda, ElementTypes);

TYPED_TEST(BiasCuda, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const int64_t size : kTestSizes) {
    this->ExpectMatchesReference(3, size);
    this->ExpectMatchesReference(size, 33);
  }
  this->ExpectMatchesReference(512, 384);
}

}  // namespace
}  // namespace tug::kernels::cuda
