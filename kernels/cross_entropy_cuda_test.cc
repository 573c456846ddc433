#include "kernels/cross_entropy_cuda.h"

#include <cfloat>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/cuda_test_support.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels::cuda {
namespace {

template <typename T>
struct Result {
  std::vector<T> gradient;
  std::vector<float> losses, losses_alone;
  std::vector<uint8_t> correct, correct_alone;
};

template <typename T>
class CrossEntropyCuda : public CudaTest {
 protected:
  Result<T> RunKernels(int64_t rows, int64_t vocab, const std::vector<float>& logits_in,
                       const std::vector<int32_t>& targets_in, const Objective& objective = {},
                       int64_t gap = 0) {
    const int64_t stride = vocab + gap;
    const OnDevice logits(WithStride(logits_in, vocab, stride), this->stream());
    const OnDevice targets(targets_in, this->stream());
    const OnDevice gradient(WithStride(std::vector<T>(logits_in.size()), vocab, stride),
                            this->stream());
    const OnDevice losses(std::vector<float>(rows), this->stream());
    const OnDevice losses_alone(std::vector<float>(rows), this->stream());
    const OnDevice correct(std::vector<uint8_t>(rows, 7), this->stream());
    const OnDevice correct_alone(std::vector<uint8_t>(rows, 7), this->stream());
    absl::Status status =
        CrossEntropyLoss(rows, vocab, stride, logits.data(), targets.data(), losses_alone.data(),
                         correct_alone.data(), this->stream());
    EXPECT_TRUE(status.ok()) << status;
    status = CrossEntropy(rows, vocab, stride, logits.data(), targets.data(), objective,
                          gradient.data(), losses.data(), correct.data(), this->stream());
    EXPECT_TRUE(status.ok()) << status;
    return {WithoutStride(gradient.Read(), vocab, stride), losses.Read(), losses_alone.Read(),
            correct.Read(), correct_alone.Read()};
  }

  // The CPU's bounds, the gradient's relative one by a third wider: expf of a GPU is within 2 units
  // in the last place (2.4e-7; the CPU's within 3e-7), its argument, up to 20 where it matters,
  // within 20 * 2^-25 = 6e-7, and the sum over a row of 52 terms a thread and 10 levels of threads
  // and warps within 60 * 2^-24 = 3.6e-6 if all roundings go one way; of 50 that do not, 5e-7.
  void ExpectMatchesReference(int64_t rows, int64_t vocab, float range,
                              const Objective& objective = {}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << " within " << range);
    const auto logits = RandomFloats(rows * vocab, 1, range);
    auto targets = RandomIndices(rows, 2, static_cast<int32_t>(vocab));
    for (int64_t row = 1; row < rows; row += 5) targets[row] = kNoTarget;
    std::vector<double> gradient(logits.size()), losses(rows), objectives(rows);
    std::vector<uint8_t> correct(rows);
    CrossEntropyRef<double>(rows, vocab, ToDouble(logits).data(), targets.data(), objective,
                            gradient.data(), losses.data(), objectives.data(), correct.data());
    const Result<T> once = RunKernels(rows, vocab, logits, targets, objective);
    ExpectClose(once.losses, losses, 2e-6, 1e-6);
    ExpectClose(once.gradient, gradient, 1e-7, 4e-6 + kRounding<T>);
    EXPECT_EQ(once.correct, correct);
    EXPECT_EQ(once.correct_alone, correct);
    ExpectSameBits(once.losses_alone, once.losses);
  }
};

using ElementTypes = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(CrossEntropyCuda, ElementTypes);

TYPED_TEST(CrossEntropyCuda, MatchesTheReferenceAtEverySize) {
  for (const int64_t size : kTestSizes) {
    if (size > 0) this->ExpectMatchesReference(3, size, 5.0f);
    this->ExpectMatchesReference(size, 65, 5.0f);
  }
  this->ExpectMatchesReference(256, 256, 10.0f);
  this->ExpectMatchesReference(16, 100, 200.0f);
}

// Beyond what shared memory holds of a row on an emulated GPU (and on an A100), and beyond what it
// holds on any.
TYPED_TEST(CrossEntropyCuda, MatchesTheReferenceOnALargeVocabulary) {
  this->ExpectMatchesReference(3, 50257, 10.0f);
  this->ExpectMatchesReference(1, 100003, 10.0f);
}

// Rows at every boundary that a vector may have, or miss.
TYPED_TEST(CrossEntropyCuda, HasTheSameBitsWhateverLiesBetweenRows) {
  for (const int64_t vocab : {1, 33, 1023, 50257}) {
    const auto logits = RandomFloats(4 * vocab, 1, 10.0f);
    const std::vector<int32_t> targets = {static_cast<int32_t>(vocab - 1), kNoTarget, 0, 0};
    const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
    const auto expected = this->RunKernels(4, vocab, logits, targets, objective);
    for (const int64_t gap : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << vocab << " and " << gap);
      const auto r = this->RunKernels(4, vocab, logits, targets, objective, gap);
      ExpectSameBits(r.gradient, expected.gradient);
      ExpectSameBits(r.losses, expected.losses);
      ExpectSameBits(r.losses_alone, expected.losses);
      EXPECT_EQ(r.correct, expected.correct);
      EXPECT_EQ(r.correct_alone, expected.correct);
    }
  }
}

TYPED_TEST(CrossEntropyCuda, RepeatsItsBits) {
  const auto logits = RandomFloats(2 * 5000, 1, 5.0f);
  const Result<TypeParam> once = this->RunKernels(2, 5000, logits, {17, 4999});
  const Result<TypeParam> again = this->RunKernels(2, 5000, logits, {17, 4999});
  ExpectSameBits(again.gradient, once.gradient);
  ExpectSameBits(again.losses, once.losses);
}

TYPED_TEST(CrossEntropyCuda, FollowsTheObjective) {
  for (const Objective objective : {Objective{.label_smoothing = 0.1f}, Objective{.z_loss = 1e-2f},
                                    Objective{.label_smoothing = 0.3f, .z_loss = 0.5f}}) {
    this->ExpectMatchesReference(7, 33, 5.0f, objective);
    this->ExpectMatchesReference(2, 5000, 3.0f, objective);
  }
}

TYPED_TEST(CrossEntropyCuda, SurvivesLogitsThatOverflowTheExponential) {
  const auto r = this->RunKernels(1, 3, {1e30f, -1e30f, 0.0f}, {0});
  EXPECT_EQ(r.losses[0], 0.0f);
  ExpectSameBits(r.gradient, As<TypeParam>({0.0f, 0.0f, 0.0f}));
}

// Whichever thread has it, and at whichever of its turns.
TYPED_TEST(CrossEntropyCuda, FindsTheLargestLogitWhereverItIs) {
  constexpr int64_t kVocab = 20000;
  for (const int64_t at : {31, 1024, 9000, 19999}) {
    std::vector<float> logits(kVocab, -std::numeric_limits<float>::infinity());
    logits[at] = 30.0f;
    logits[(at + 7000) % kVocab] = 20.0f;
    const auto r = this->RunKernels(1, kVocab, logits, {static_cast<int32_t>(at)});
    EXPECT_NEAR(r.losses[0], std::log1p(std::exp(-10.0)), 1e-7);
    EXPECT_EQ(r.correct[0], 1);
  }
}

TYPED_TEST(CrossEntropyCuda, PassesOnWhatIsNotANumber) {
  for (int64_t at = 0; at < 40; ++at) {
    std::vector<float> logits(40, 1.0f);
    logits[3] = 2.0f;
    logits[at] = std::numeric_limits<float>::quiet_NaN();
    const auto r = this->RunKernels(1, 40, logits, {3});
    EXPECT_TRUE(std::isnan(r.losses[0]));
    EXPECT_TRUE(std::isnan(ToDouble(r.gradient[7])));
    EXPECT_EQ(r.correct[0], 0);
  }
}

TYPED_TEST(CrossEntropyCuda, OfEqualLogitsOnlyTheFirstIsCorrect) {
  for (const auto& [target, correct] : {std::pair(2, 0), std::pair(1, 1), std::pair(0, 0)}) {
    const auto r = this->RunKernels(1, 4, {1.0f, 2.0f, 2.0f, 0.0f}, {target});
    EXPECT_EQ(r.correct[0], correct) << target;
  }
  for (const float all : {-FLT_MAX, 0.0f}) {
    const auto r = this->RunKernels(2, 5000, std::vector<float>(10000, all), {0, 4096});
    EXPECT_EQ(r.correct, (std::vector<uint8_t>{1, 0})) << all;
  }
}

TYPED_TEST(CrossEntropyCuda, MayWriteTheGradientOverTheLogitsAndNeedNotSayWhatIsCorrect) {
  constexpr int64_t kRows = 3, kVocab = 50257;
  const auto logits = RandomFloats(kRows * kVocab, 1, 5.0f);
  const std::vector<int32_t> targets = {50256, kNoTarget, 0};
  const Objective objective{.label_smoothing = 0.1f, .z_loss = 1e-3f};
  const OnDevice apart(std::vector<float>(logits.size()), this->stream());
  const OnDevice in_place(logits, this->stream());
  const OnDevice targets_gpu(targets, this->stream());
  const OnDevice losses(std::vector<float>(kRows), this->stream());
  for (float* const gradient : {apart.data(), in_place.data()}) {
    const absl::Status status =
        CrossEntropy(kRows, kVocab, kVocab, in_place.data(), targets_gpu.data(), objective,
                     gradient, losses.data(), nullptr, this->stream());
    ASSERT_TRUE(status.ok()) << status;
  }
  ExpectSameBits(in_place.Read(), apart.Read());
}

}  // namespace
}  // namespace tug::kernels::cuda
