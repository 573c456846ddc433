// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.h"

#include "gtest/gtest.h"
#include "kernels/reference/activation_test_support.h"

namespace tug::kernels {
namespace {

template <typename Element>
class ActivationOnCpu : public OnCpu {
 public:
  using T = Element;

 protected:
  void Forward(Activation activation, int64_t rows, int64_t width, const float* bias, T* pre,
               T* y) {
    BiasActivationForward(pool(), activation, rows, width, bias, pre, y);
  }
  void Backward(Activation activation, int64_t n, const T* dy, const T* pre, T* dx) {
    ActivationBackward(pool(), activation, n, dy, pre, dx);
  }
};
using Types = testing::Types<ActivationOnCpu<float>, ActivationOnCpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, ActivationTest, Types);

template <typename Of>
using ActivationCpu = ActivationTest<Of>;
TYPED_TEST_SUITE(ActivationCpu, Types);

TYPED_TEST(ActivationCpu, MatchesTheReferenceOnWideRows) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    this->ExpectMatchesReference(activation, {256, 1536, 4.0f, true});
  }
}

TYPED_TEST(ActivationCpu, AnElementsBitsDoNotDependOnItsPlace) {
  const typename TestFixture::Inputs in(1, 200, 3.0f, false);
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto whole = this->RunKernels(activation, in);
    for (const int64_t begin : {1, 5, 16, 33, 150}) {
      auto rest = in;
      rest.width -= begin;
      rest.x.erase(rest.x.begin(), rest.x.begin() + begin);
      rest.dy.erase(rest.dy.begin(), rest.dy.begin() + begin);
      const auto part = this->RunKernels(activation, rest);
      ExpectSameBits(part.y, {whole.y.begin() + begin, whole.y.end()});
      ExpectSameBits(part.dx, {whole.dx.begin() + begin, whole.dx.end()});
    }
  }
}

TYPED_TEST(ActivationCpu, ATileHasTheBitsOfTheWholeAndLeavesTheRestAlone) {
  constexpr int64_t kRows = 5, kWidth = 100, kBegin = 37, kColumns = 43;
  const typename TestFixture::Inputs in(kRows, kWidth, 3.0f, true);
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    const auto whole = this->RunKernels(activation, in);
    auto pre = in.x, y = in.x;
    BiasActivationTile(activation, kRows, kColumns, kWidth, in.bias.data() + kBegin,
                       pre.data() + kBegin, y.data() + kBegin);
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      const bool inside = i % kWidth >= kBegin && i % kWidth < kBegin + kColumns;
      EXPECT_EQ(pre[i], inside ? whole.pre[i] : in.x[i]) << i;
      EXPECT_EQ(y[i], inside ? whole.y[i] : in.x[i]) << i;
    }
  }
}

TEST(Activation, ReferenceGradientIsTheFiniteDifference) {
  const auto x = ToDouble(RandomFloats(50, 1, 4.0f));
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    std::vector<double> gradient;
    for (const double u : x) gradient.push_back(ActivationGradientRef(activation, u));
    const auto loss = [&](const std::vector<double>& at) {
      double sum = 0;
      for (const double u : at) sum += ActivationRef(activation, u);
      return sum;
    };
    ExpectClose(gradient, FiniteDifferences(x, loss), 1e-8, 1e-8);
  }
}

}  // namespace
}  // namespace tug::kernels
