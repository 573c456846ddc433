// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias.h"

#include "gtest/gtest.h"
#include "kernels/reference/bias_test_support.h"

namespace tug::kernels {
namespace {

template <typename Element>
class BiasOnCpu : public OnCpu {
 public:
  using T = Element;

 protected:
  void Gradient(int64_t rows, int64_t width, const T* dy, float* dbias) {
    BiasGradient(pool(), rows, width, dy, dbias);
  }
};
using Types = testing::Types<BiasOnCpu<float>, BiasOnCpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, BiasTest, Types);

TEST(Bias, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 4, width = 3;
  const auto x = ToDouble(RandomFloats(rows * width, 1));
  const auto w = ToDouble(RandomFloats(rows * width, 2));
  const auto loss = [&](const std::vector<double>& bias) {
    auto y = x;
    for (int64_t i = 0; i < rows * width; ++i) y[i] += bias[i % width];
    return Dot(w, y);
  };
  std::vector<double> dbias(width);
  BiasGradientRef<double>(rows, width, w.data(), dbias.data());
  ExpectClose(dbias, FiniteDifferences(ToDouble(RandomFloats(width, 3)), loss), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
