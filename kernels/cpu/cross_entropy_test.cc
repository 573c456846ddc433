// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.h"

#include "gtest/gtest.h"
#include "kernels/reference/cross_entropy_test_support.h"

namespace tug::kernels {
namespace {

template <typename Element>
class CrossEntropyOnCpu : public OnCpu {
 public:
  using T = Element;
  static constexpr double kGradientBound = 3e-6;

 protected:
  void CrossEntropy(const CrossEntropyArgs<T>& args) { Run(&kernels::CrossEntropy<T>, args); }
};
using Types = testing::Types<CrossEntropyOnCpu<float>, CrossEntropyOnCpu<Bf16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, CrossEntropyTest, Types);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, CrossEntropyInPlaceTest, CrossEntropyOnCpu<float>);

template <typename Of>
using CrossEntropyCpu = CrossEntropyTest<Of>;
TYPED_TEST_SUITE(CrossEntropyCpu, Types);

TYPED_TEST(CrossEntropyCpu, MatchesTheReferenceOnManyRows) {
  this->ExpectMatchesReference(512, 256, 10.0f);
  this->ExpectMatchesReference(4, 50257, 10.0f);
}

TEST(CrossEntropy, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 3, vocab = 5;
  const std::vector<int32_t> targets = {4, kNoTarget, 2};
  const auto logits = ToDouble(RandomFloats(rows * vocab, 1, 3.0f));
  std::vector<double> gradient(logits.size()), losses(rows), objectives(rows);
  std::vector<uint8_t> correct(rows);
  const auto loss = [&](const std::vector<double>& at) {
    CrossEntropyRef<double>({.rows = rows,
                             .vocab = vocab,
                             .stride = vocab,
                             .logits = at.data(),
                             .targets = targets.data(),
                             .objective = {.label_smoothing = 0.2f, .z_loss = 0.1f},
                             .gradient = gradient.data(),
                             .losses = losses.data(),
                             .correct = correct.data()},
                            objectives.data());
    return objectives[0] + objectives[1] + objectives[2];
  };
  const auto expected = FiniteDifferences(logits, loss);
  loss(logits);
  ExpectClose(gradient, expected, 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
