// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/layernorm_cuda.h"

#include "gtest/gtest.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "kernels/cuda/dropout_cuda.h"
#include "kernels/reference/layernorm_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename Element>
class LayerNormOnGpu : public OnGpu {
 public:
  using T = Element;

 protected:
  void Forward(const LayerNormForwardArgs<T>& args) { Run(&LayerNormForward<T>, args); }
  void Backward(const LayerNormBackwardArgs<T>& args) { Run(&LayerNormBackward<T>, args); }
  void ResidualForward(const ResidualLayerNormForwardArgs<T>& args) {
    Run(&ResidualLayerNormForward<T>, args);
  }
  void Dropout(const DropoutAddArgs<T>& args) { Run(&DropoutAdd<T>, args); }
};
using Types = testing::Types<LayerNormOnGpu<float>, LayerNormOnGpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, LayerNormTest, Types);

template <typename Of>
using LayerNormCuda = LayerNormTest<Of>;
TYPED_TEST_SUITE(LayerNormCuda, Types);

TYPED_TEST(LayerNormCuda, MatchesTheReferenceAtWidthsOfEveryTeam) {
  for (const int64_t width : {384, 512, 768, 1024}) this->ExpectMatchesReference(20, width);
  for (const int64_t width : {1025, 1600, 4160}) this->ExpectMatchesReference(3, width);
}

TYPED_TEST(LayerNormCuda, HasTheSameBitsBehindABoundary) {
  for (const int64_t width : {32, 768, 1600}) {
    const typename TestFixture::Inputs in(11, width);
    this->ExpectSame(this->RunKernels(in, {.offset = 1}), this->RunKernels(in, {}));
  }
}

TYPED_TEST(LayerNormCuda, RefusesAWidthBeyondItsLimit) {
  using T = typename TestFixture::T;
  const OnDevice x(std::vector<T>(kMaxLayerNormWidth + 1), this->stream());
  const OnDevice gamma(std::vector<float>(kMaxLayerNormWidth + 1), this->stream());
  const absl::Status status =
      LayerNormForward<T>({1, kMaxLayerNormWidth + 1, x.data(), gamma.data(), nullptr, x.data(),
                           gamma.data(), gamma.data()},
                          this->stream());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

using LayerNormOfFloatCuda = LayerNormTest<LayerNormOnGpu<float>>;

// More rows than teams, both for teams of a warp and of a block.
TEST_F(LayerNormOfFloatCuda, SumsManyRows) {
  ExpectMatchesReference(132 * 2 * 8 + 77, 16);
  ExpectMatchesReference(132 * 2 + 9, 4096);
}

}  // namespace
}  // namespace tug::kernels::cuda
