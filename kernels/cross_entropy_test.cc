#include "kernels/cross_entropy.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

template <typename T>
struct Result {
  std::vector<T> gradient;
  std::vector<float> losses, losses_alone;
  std::vector<uint8_t> correct, correct_alone;
};

template <typename T>
Result<T> RunKernel(int threads, int64_t rows, int64_t vocab, const std::vector<float>& logits,
                    const std::vector<int32_t>& targets, const Objective& objective = {}) {
  ThreadPool pool(threads);
  Result<T> r{std::vector<T>(logits.size()), std::vector<float>(rows), std::vector<float>(rows),
              std::vector<uint8_t>(rows), std::vector<uint8_t>(rows)};
  CrossEntropyLoss(pool, rows, vocab, logits.data(), targets.data(), r.losses_alone.data(),
                   r.correct_alone.data());
  CrossEntropy(pool, rows, vocab, logits.data(), targets.data(), objective, r.gradient.data(),
               r.losses.data(), r.correct.data());
  return r;
}

template <typename T>
class CrossEntropyWithGradients : public testing::Test {
 protected:
  static void ExpectMatchesReference(int64_t rows, int64_t vocab, float range,
                                     const Objective& objective = {}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << " within " << range);
    const auto logits = RandomFloats(rows * vocab, 1, range);
    auto targets = RandomIndices(rows, 2, static_cast<int32_t>(vocab));
    for (int64_t row = 1; row < rows; row += 5) targets[row] = kNoTarget;
    std::vector<double> gradient(logits.size()), losses(rows), objectives(rows);
    std::vector<uint8_t> correct(rows);
    CrossEntropyRef<double>(rows, vocab, ToDouble(logits).data(), targets.data(), objective,
                            gradient.data(), losses.data(), objectives.data(), correct.data());
    const Result<T> one = RunKernel<T>(1, rows, vocab, logits, targets, objective);
    ExpectClose(one.losses, losses, 2e-6, 1e-6);
    ExpectClose(one.gradient, gradient, 1e-7, 3e-6 + kRounding<T>);
    EXPECT_EQ(one.correct, correct);
    for (const int threads : {1, 2, 3}) {
      const Result<T> many = RunKernel<T>(threads, rows, vocab, logits, targets, objective);
      ExpectSameBits(many.gradient, one.gradient);
      ExpectSameBits(many.losses, one.losses);
      ExpectSameBits(many.losses_alone, one.losses);
      EXPECT_EQ(many.correct, correct);
      EXPECT_EQ(many.correct_alone, correct);
    }
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(CrossEntropyWithGradients, ElementTypes);

TYPED_TEST(CrossEntropyWithGradients, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    if (size > 0) this->ExpectMatchesReference(3, size, 5.0f);
    this->ExpectMatchesReference(size, 65, 5.0f);
  }
  this->ExpectMatchesReference(512, 256, 10.0f);
  this->ExpectMatchesReference(4, 50257, 10.0f);
  this->ExpectMatchesReference(16, 100, 200.0f);
}

TYPED_TEST(CrossEntropyWithGradients, FollowsTheObjective) {
  for (const Objective objective : {Objective{.label_smoothing = 0.1f}, Objective{.z_loss = 1e-2f},
                                    Objective{.label_smoothing = 0.3f, .z_loss = 0.5f}}) {
    this->ExpectMatchesReference(7, 33, 5.0f, objective);
    this->ExpectMatchesReference(2, 5000, 3.0f, objective);
  }
}

TYPED_TEST(CrossEntropyWithGradients, SurvivesLogitsThatOverflowTheExponential) {
  const auto r = RunKernel<TypeParam>(1, 1, 3, {1e30f, -1e30f, 0.0f}, {0});
  EXPECT_EQ(r.losses[0], 0.0f);
  ExpectSameBits(r.gradient, As<TypeParam>({0.0f, 0.0f, 0.0f}));
}

// Which comes first must not matter, also where it is many chunks away.
TYPED_TEST(CrossEntropyWithGradients, FindsTheLargestLogitWhereverItIs) {
  constexpr int64_t kVocab = 20000;
  for (const int64_t at : {0, 31, 4095, 4096, 9000, 19999}) {
    std::vector<float> logits(kVocab, -std::numeric_limits<float>::infinity());
    logits[at] = 30.0f;
    logits[(at + 7000) % kVocab] = 20.0f;
    const auto r = RunKernel<TypeParam>(1, 1, kVocab, logits, {static_cast<int32_t>(at)});
    EXPECT_NEAR(r.losses[0], std::log1p(std::exp(-10.0)), 1e-7);
    EXPECT_EQ(r.correct[0], 1);
  }
}

TYPED_TEST(CrossEntropyWithGradients, PassesOnWhatIsNotANumber) {
  for (int64_t at = 0; at < 40; ++at) {
    std::vector<float> logits(40, 1.0f);
    logits[at] = std::numeric_limits<float>::quiet_NaN();
    const auto r = RunKernel<TypeParam>(1, 1, 40, logits, {3});
    EXPECT_TRUE(std::isnan(r.losses[0]));
    EXPECT_TRUE(std::isnan(ToDouble(r.gradient[7])));
    EXPECT_EQ(r.correct[0], 0);
  }
}

TEST(CrossEntropy, OfEqualLogitsOnlyTheFirstIsCorrect) {
  for (const auto& [target, correct] : {std::pair(2, 0), std::pair(1, 1), std::pair(0, 0)}) {
    const auto r = RunKernel<float>(1, 1, 4, {1.0f, 2.0f, 2.0f, 0.0f}, {target});
    EXPECT_EQ(r.correct[0], correct) << target;
  }
}

TEST(CrossEntropy, MayWriteTheGradientOverTheLogitsAndNeedNotSayWhatIsCorrect) {
  const auto logits = RandomFloats(3 * 5000, 1, 5.0f);
  const std::vector<int32_t> targets = {4999, kNoTarget, 0};
  const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
  const auto apart = RunKernel<float>(1, 3, 5000, logits, targets, objective);
  ThreadPool pool(2);
  auto in_place = logits;
  std::vector<float> losses(3);
  CrossEntropy(pool, 3, 5000, in_place.data(), targets.data(), objective, in_place.data(),
               losses.data(), nullptr);
  ExpectSameBits(in_place, apart.gradient);
  ExpectSameBits(losses, apart.losses);
}

TEST(CrossEntropy, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 3, vocab = 5;
  const std::vector<int32_t> targets = {4, kNoTarget, 2};
  const Objective objective{.label_smoothing = 0.2f, .z_loss = 0.1f};
  const auto logits = ToDouble(RandomFloats(rows * vocab, 1, 3.0f));
  std::vector<double> gradient(logits.size()), losses(rows), objectives(rows);
  std::vector<uint8_t> correct(rows);
  const auto loss = [&](const std::vector<double>& at) {
    std::vector<double> ignored(at.size());
    CrossEntropyRef<double>(rows, vocab, at.data(), targets.data(), objective, ignored.data(),
                            losses.data(), objectives.data(), correct.data());
    return objectives[0] + objectives[1] + objectives[2];
  };
  CrossEntropyRef<double>(rows, vocab, logits.data(), targets.data(), objective, gradient.data(),
                          losses.data(), objectives.data(), correct.data());
  ExpectClose(gradient, FiniteDifferences(logits, loss), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
