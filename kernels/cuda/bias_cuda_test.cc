// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bias_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/reference/bias_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename Element>
class BiasOnGpu : public OnGpu {
 public:
  using T = Element;

 protected:
  void Gradient(int64_t rows, int64_t width, const T* dy, float* dbias) {
    Expect(BiasGradient(rows, width, dy, /*dy_stride=*/width, dbias, stream()));
  }
};
using Types = testing::Types<BiasOnGpu<float>, BiasOnGpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, BiasTest, Types);

template <typename Of>
using BiasCuda = BiasTest<Of>;
TYPED_TEST_SUITE(BiasCuda, Types);

TYPED_TEST(BiasCuda, HasSameBitsForAnyPaddingBetweenRows) {
  constexpr int64_t kRows = 70;
  for (const int64_t width : {33, 768, 1023}) {
    const auto dy = As<typename TestFixture::T>(RandomFloats(kRows * width, 4));
    const auto gradient = [&](int64_t dy_stride) {
      const auto apart = this->Put(WithStride(dy, width, dy_stride));
      const auto dbias = this->Put(RandomFloats(width, 2));
      this->Expect(
          BiasGradient(kRows, width, apart.data(), dy_stride, dbias.data(), this->stream()));
      return dbias.Read();
    };
    const auto expected = gradient(width);
    for (const int64_t dy_stride : {width + 1, (width + 7) / 8 * 8}) {
      ExpectSameBits(gradient(dy_stride), expected);
    }
  }
}

}  // namespace
}  // namespace tug::kernels::cuda
