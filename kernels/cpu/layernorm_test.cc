// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm.h"

#include "gtest/gtest.h"
#include "kernels/reference/layernorm_test_support.h"

namespace tug::kernels {
namespace {

template <typename Element>
class LayerNormOnCpu : public OnCpu {
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
using Types = testing::Types<LayerNormOnCpu<float>, LayerNormOnCpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, LayerNormTest, Types);

template <typename Of>
using LayerNormCpu = LayerNormTest<Of>;
TYPED_TEST_SUITE(LayerNormCpu, Types);

TYPED_TEST(LayerNormCpu, MatchesTheReferenceOnManyRows) { this->ExpectMatchesReference(512, 384); }

TEST(LayerNorm, ReferenceGradientsAreFiniteDifferences) {
  const int64_t rows = 3, width = 7;
  const auto x = ToDouble(RandomFloats(rows * width, 1));
  const auto gamma = ToDouble(RandomFloats(width, 2));
  const auto beta = ToDouble(RandomFloats(width, 3));
  const auto w = ToDouble(RandomFloats(rows * width, 4));
  std::vector<double> y(rows * width), mean(rows), rstd(rows);
  const auto loss = [&](const auto& x_at, const auto& gamma_at, const auto& beta_at) {
    LayerNormForwardRef<double>({rows, width, x_at.data(), gamma_at.data(), beta_at.data(),
                                 y.data(), mean.data(), rstd.data()});
    return Dot(w, y);
  };
  loss(x, gamma, beta);
  std::vector<double> dx(rows * width), dgamma(width), dbeta(width);
  LayerNormBackwardRef<double>({.rows = rows,
                                .width = width,
                                .dy = w.data(),
                                .x = x.data(),
                                .gamma = gamma.data(),
                                .mean = mean.data(),
                                .rstd = rstd.data(),
                                .accumulate = false,
                                .dx = dx.data(),
                                .dgamma = dgamma.data(),
                                .dbeta = dbeta.data()});
  const auto by_x = [&](const auto& at) { return loss(at, gamma, beta); };
  const auto by_gamma = [&](const auto& at) { return loss(x, at, beta); };
  const auto by_beta = [&](const auto& at) { return loss(x, gamma, at); };
  ExpectClose(dx, FiniteDifferences(x, by_x), 1e-7, 1e-7);
  ExpectClose(dgamma, FiniteDifferences(gamma, by_gamma), 1e-8, 1e-8);
  ExpectClose(dbeta, FiniteDifferences(beta, by_beta), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
