#include "kernels/cross_entropy.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/cross_entropy_ref.h"
#include "kernels/kernel_test_support.h"

namespace tug::kernels {
namespace {

struct Result {
  std::vector<float> gradient, losses, losses_alone;
};

Result RunKernel(int threads, int64_t rows, int64_t vocab, const std::vector<float>& logits,
                 const std::vector<int32_t>& targets) {
  ThreadPool pool(threads);
  Result r{logits, std::vector<float>(rows), std::vector<float>(rows)};
  CrossEntropyLoss(pool, rows, vocab, logits.data(), targets.data(), r.losses_alone.data());
  CrossEntropy(pool, rows, vocab, r.gradient.data(), targets.data(), r.losses.data());
  return r;
}

void ExpectMatchesReference(int64_t rows, int64_t vocab, float range) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << vocab << " within " << range);
  const auto logits = RandomFloats(rows * vocab, 1, range);
  const auto targets = RandomIndices(rows, 2, static_cast<int32_t>(vocab));
  auto gradient = ToDouble(logits);
  std::vector<double> losses(rows);
  CrossEntropyRef<double>(rows, vocab, gradient.data(), targets.data(), losses.data());
  const Result one = RunKernel(1, rows, vocab, logits, targets);
  ExpectClose(one.losses, losses, 2e-6, 1e-6);
  ExpectClose(one.gradient, gradient, 1e-7, 3e-6);
  ExpectSameBits(one.losses_alone, one.losses);
  for (const int threads : {2, 3}) {
    const Result many = RunKernel(threads, rows, vocab, logits, targets);
    ExpectSameBits(many.gradient, one.gradient);
    ExpectSameBits(many.losses, one.losses);
    ExpectSameBits(many.losses_alone, one.losses);
  }
}

TEST(CrossEntropy, MatchesTheReferenceAtEverySizeOnAnyNumberOfThreads) {
  for (const int64_t size : kTestSizes) {
    if (size > 0) ExpectMatchesReference(3, size, 5.0f);
    ExpectMatchesReference(size, 65, 5.0f);
  }
  ExpectMatchesReference(512, 256, 10.0f);
  ExpectMatchesReference(4, 50257, 10.0f);
  ExpectMatchesReference(16, 100, 200.0f);
}

TEST(CrossEntropy, SurvivesLogitsThatOverflowTheExponential) {
  const Result r = RunKernel(1, 1, 3, {1e30f, -1e30f, 0.0f}, {0});
  EXPECT_EQ(r.losses[0], 0.0f);
  EXPECT_EQ(r.gradient, (std::vector<float>{0.0f, 0.0f, 0.0f}));
}

TEST(CrossEntropy, PassesOnWhatIsNotANumber) {
  for (int64_t at = 0; at < 40; ++at) {
    std::vector<float> logits(40, 1.0f);
    logits[at] = std::numeric_limits<float>::quiet_NaN();
    const Result r = RunKernel(1, 1, 40, logits, {3});
    EXPECT_TRUE(std::isnan(r.losses[0]));
    EXPECT_TRUE(std::isnan(r.gradient[7]));
  }
}

TEST(CrossEntropy, ReferenceGradientIsTheFiniteDifference) {
  const int64_t rows = 3, vocab = 5;
  const std::vector<int32_t> targets = {4, 0, 2};
  const auto logits = ToDouble(RandomFloats(rows * vocab, 1, 3.0f));
  const auto loss = [&](std::vector<double> at) {
    std::vector<double> losses(rows);
    CrossEntropyRef<double>(rows, vocab, at.data(), targets.data(), losses.data());
    return losses[0] + losses[1] + losses[2];
  };
  auto gradient = logits;
  std::vector<double> losses(rows);
  CrossEntropyRef<double>(rows, vocab, gradient.data(), targets.data(), losses.data());
  ExpectClose(gradient, FiniteDifferences(logits, loss), 1e-8, 1e-8);
}

}  // namespace
}  // namespace tug::kernels
