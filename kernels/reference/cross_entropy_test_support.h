// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_REFERENCE_CROSS_ENTROPY_TEST_SUPPORT_H_
#define TUG_KERNELS_REFERENCE_CROSS_ENTROPY_TEST_SUPPORT_H_

// Tests of cross-entropy, shared by the CPU and GPUs.

#include <cfloat>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/cross_entropy_ref.h"
#include "kernels/reference/kernel_test_support.h"

namespace tug::kernels {

// Of: a device (OnCpu or OnGpu) with the element type T, the operation CrossEntropy and
// kGradientBound, a relative bound.
template <typename Of>
class CrossEntropyTest : public Of {
 protected:
  using T = typename Of::T;

  struct Result {
    std::vector<T> gradient;
    std::vector<float> losses, losses_alone;
    std::vector<uint8_t> correct, correct_alone;
  };

  // `gap`: elements between rows. There is one row per target.
  Result RunKernels(int64_t vocab, const std::vector<float>& logits_in,
                    const std::vector<int32_t>& targets_in, const Objective& objective = {},
                    int64_t gap = 0) {
    const auto rows = static_cast<int64_t>(targets_in.size());
    const int64_t stride = vocab + gap;
    const auto logits = this->Put(WithStride(logits_in, vocab, stride));
    const auto targets = this->Put(targets_in);
    const auto gradient = this->Put(WithStride(std::vector<T>(logits_in.size()), vocab, stride));
    const auto losses = this->Put(std::vector<float>(rows));
    const auto losses_alone = this->Put(std::vector<float>(rows));
    const auto correct = this->Put(std::vector<uint8_t>(rows, 7));
    const auto correct_alone = this->Put(std::vector<uint8_t>(rows, 7));
    CrossEntropyArgs<T> args = {.rows = rows,
                                .vocab = vocab,
                                .stride = stride,
                                .logits = logits.data(),
                                .targets = targets.data(),
                                .losses = losses_alone.data(),
                                .correct = correct_alone.data()};
    this->CrossEntropy(args);
    args.objective = objective;
    args.gradient = gradient.data();
    args.losses = losses.data();
    args.correct = correct.data();
    this->CrossEntropy(args);
    return {WithoutStride(gradient.Read(), vocab, stride), losses.Read(), losses_alone.Read(),
            correct.Read(), correct_alone.Read()};
  }

  static void ExpectSame(const Result& a, const Result& b) {
    ExpectSameBits(a.gradient, b.gradient);
    ExpectSameBits(a.losses, b.losses);
    ExpectSameBits(a.losses_alone, b.losses);
    EXPECT_EQ(a.correct, b.correct);
    EXPECT_EQ(a.correct_alone, b.correct);
  }

  void ExpectMatchesReference(int64_t rows, int64_t vocab, float range,
                              const Objective& objective = {}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << " within " << range);
    const auto logits = RandomFloats(rows * vocab, 1, range);
    auto targets = RandomIndices(rows, 2, static_cast<int32_t>(vocab));
    for (int64_t row = 1; row < rows; row += 5) targets[row] = kNoTarget;
    std::vector<double> gradient(logits.size()), losses(rows), objectives(rows);
    std::vector<uint8_t> correct(rows);
    const auto wide = ToDouble(logits);
    CrossEntropyRef<double>({rows, vocab, vocab, wide.data(), targets.data(), objective,
                             gradient.data(), losses.data(), correct.data()},
                            objectives.data());
    this->BeginRun(0);
    const Result one = RunKernels(vocab, logits, targets, objective);
    ExpectClose(one.losses, losses, 2e-6, 1e-6);
    ExpectClose(one.gradient, gradient, 1e-7, Of::kGradientBound + kRounding<T>);
    EXPECT_EQ(one.correct, correct);
    EXPECT_EQ(one.correct_alone, correct);
    ExpectSameBits(one.losses_alone, one.losses);
    for (int run = 1; run < this->kRuns; ++run) {
      this->BeginRun(run);
      ExpectSame(RunKernels(vocab, logits, targets, objective), one);
    }
  }

  // `target`: logit of the target; the other logits are 1.
  void ExpectPassesOnNan(float target) {
    for (int64_t at = 0; at < 40; ++at) {
      std::vector<float> logits(40, 1.0f);
      logits[3] = target;
      logits[at] = std::numeric_limits<float>::quiet_NaN();
      const auto r = RunKernels(40, logits, {3});
      EXPECT_TRUE(std::isnan(r.losses[0]));
      EXPECT_TRUE(std::isnan(ToDouble(r.gradient[7])));
      EXPECT_EQ(r.correct[0], 0);
    }
  }
};
TYPED_TEST_SUITE_P(CrossEntropyTest);

TYPED_TEST_P(CrossEntropyTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits) {
  for (const int64_t size : kTestSizes) {
    if (size > 0) this->ExpectMatchesReference(3, size, 5.0f);
    this->ExpectMatchesReference(size, 65, 5.0f);
  }
  this->ExpectMatchesReference(256, 256, 10.0f);
  this->ExpectMatchesReference(16, 100, 200.0f);
  this->ExpectMatchesReference(3, 50257, 10.0f);
}

// Rows start at and off every vector boundary.
TYPED_TEST_P(CrossEntropyTest, HasSameBitsForAnyPaddingBetweenRows) {
  for (const int64_t vocab : {1, 33, 1023, 50257}) {
    const auto logits = RandomFloats(4 * vocab, 1, 10.0f);
    const std::vector<int32_t> targets = {static_cast<int32_t>(vocab - 1), kNoTarget, 0, 0};
    const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
    const auto expected = this->RunKernels(vocab, logits, targets, objective);
    for (const int64_t gap : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << vocab << " and " << gap);
      this->ExpectSame(this->RunKernels(vocab, logits, targets, objective, gap), expected);
    }
  }
}

TYPED_TEST_P(CrossEntropyTest, FollowsTheObjective) {
  for (const Objective objective : {Objective{.label_smoothing = 0.1f}, Objective{.z_loss = 1e-2f},
                                    Objective{.label_smoothing = 0.3f, .z_loss = 0.5f}}) {
    this->ExpectMatchesReference(7, 33, 5.0f, objective);
    this->ExpectMatchesReference(2, 5000, 3.0f, objective);
  }
}

TYPED_TEST_P(CrossEntropyTest, SurvivesLogitsThatOverflowTheExponential) {
  const auto r = this->RunKernels(3, {1e30f, -1e30f, 0.0f}, {0});
  EXPECT_EQ(r.losses[0], 0.0f);
  ExpectSameBits(r.gradient, As<typename TestFixture::T>({0.0f, 0.0f, 0.0f}));
}

// The largest logit must be found in any chunk and by any thread.
TYPED_TEST_P(CrossEntropyTest, FindsTheLargestLogitWhereverItIs) {
  constexpr int64_t kVocab = 20000;
  for (const int64_t at : {0, 31, 1024, 4095, 4096, 9000, 19999}) {
    std::vector<float> logits(kVocab, -std::numeric_limits<float>::infinity());
    logits[at] = 30.0f;
    logits[(at + 7000) % kVocab] = 20.0f;
    const auto r = this->RunKernels(kVocab, logits, {static_cast<int32_t>(at)});
    EXPECT_NEAR(r.losses[0], std::log1p(std::exp(-10.0)), 1e-7);
    EXPECT_EQ(r.correct[0], 1);
  }
}

TYPED_TEST_P(CrossEntropyTest, PassesOnWhatIsNotANumber) { this->ExpectPassesOnNan(1.0f); }

TYPED_TEST_P(CrossEntropyTest, CountsOnlyFirstOfEqualLogitsAsCorrect) {
  for (const auto& [target, correct] : {std::pair(2, 0), std::pair(1, 1), std::pair(0, 0)}) {
    const auto r = this->RunKernels(4, {1.0f, 2.0f, 2.0f, 0.0f}, {target});
    EXPECT_EQ(r.correct[0], correct) << target;
  }
  for (const float all : {-FLT_MAX, 0.0f}) {
    const auto r = this->RunKernels(5000, std::vector<float>(10000, all), {0, 4096});
    EXPECT_EQ(r.correct, (std::vector<uint8_t>{1, 0})) << all;
  }
}

REGISTER_TYPED_TEST_SUITE_P(CrossEntropyTest, MatchesTheReferenceAtEverySizeAndRepeatsItsBits,
                            HasSameBitsForAnyPaddingBetweenRows, FollowsTheObjective,
                            SurvivesLogitsThatOverflowTheExponential,
                            FindsTheLargestLogitWhereverItIs, PassesOnWhatIsNotANumber,
                            CountsOnlyFirstOfEqualLogitsAsCorrect);

// REQUIRES: T = float.
template <typename Of>
class CrossEntropyInPlaceTest : public CrossEntropyTest<Of> {};
TYPED_TEST_SUITE_P(CrossEntropyInPlaceTest);

TYPED_TEST_P(CrossEntropyInPlaceTest, MayWriteTheGradientOverTheLogitsAndNeedNotSayWhatIsCorrect) {
  constexpr int64_t kRows = 3;
  for (const int64_t vocab : {5000, 50257}) {
    const auto logits = RandomFloats(kRows * vocab, 1, 5.0f);
    const std::vector<int32_t> targets = {static_cast<int32_t>(vocab - 1), kNoTarget, 0};
    const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
    const auto apart = this->RunKernels(vocab, logits, targets, objective);
    const auto in_place = this->Put(logits);
    const auto of_rows = this->Put(targets);
    const auto losses = this->Put(std::vector<float>(kRows));
    this->CrossEntropy({kRows, vocab, vocab, in_place.data(), of_rows.data(), objective,
                        in_place.data(), losses.data(), nullptr});
    ExpectSameBits(in_place.Read(), apart.gradient);
    ExpectSameBits(losses.Read(), apart.losses);
  }
}

REGISTER_TYPED_TEST_SUITE_P(CrossEntropyInPlaceTest,
                            MayWriteTheGradientOverTheLogitsAndNeedNotSayWhatIsCorrect);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_REFERENCE_CROSS_ENTROPY_TEST_SUPPORT_H_
