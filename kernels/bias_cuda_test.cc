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
  std::vector<float> RunKernel(int64_t rows, int64_t width, int64_t dy_stride) {
    const OnDevice dbias(RandomFloats(width, 2), this->stream());
    const auto together = As<T>(RandomFloats(rows * width, 4));
    const OnDevice dy(WithStride(together, width, dy_stride), this->stream());
    const absl::Status status =
        BiasGradient(rows, width, dy.data(), dy_stride, dbias.data(), this->stream());
    EXPECT_TRUE(status.ok()) << status;
    return dbias.Read();
  }

  void ExpectMatchesReference(int64_t rows, int64_t width) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    auto dbias = ToDouble(RandomFloats(width, 2));
    const auto dy = ToDouble(As<T>(RandomFloats(rows * width, 4)));
    BiasGradientRef<double>(rows, width, dy.data(), dbias.data());
    const auto once = RunKernel(rows, width, width);
    ExpectClose(once, dbias, 2e-6 + 1e-7 * static_cast<double>(rows) / 8, 1e-6);
    ExpectSameBits(RunKernel(rows, width, width), once);
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
  this->ExpectMatchesReference(5, 50257);
}

TYPED_TEST(BiasCuda, HasTheSameBitsWhateverLiesBetweenRows) {
  for (const int64_t width : {33, 768, 1023}) {
    const auto expected = this->RunKernel(70, width, width);
    for (const int64_t dy_stride : {width + 1, (width + 7) / 8 * 8}) {
      ExpectSameBits(this->RunKernel(70, width, dy_stride), expected);
    }
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
