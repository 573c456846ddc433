// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum.h"

#include <limits>

#include "gtest/gtest.h"
#include "kernels/reference/kernel_test_support.h"
#include "kernels/reference/sum_ref.h"

namespace tug::kernels {
namespace {

TEST(CopyAndCheck, CopiesAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto src = RandomFloats(n + offset, 1);
      std::vector<float> dst(n + 1, 7.0f);
      EXPECT_TRUE(CopyAndCheck(src.data() + offset, dst.data(), n));
      EXPECT_EQ(dst[n], 7.0f) << "wrote beyond the end";
      dst.pop_back();
      ExpectSameBits(dst, {src.begin() + offset, src.end()});
    }
  }
}

TEST(AddAndCheck, AddsAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto src = RandomFloats(n + offset, 1);
      auto acc = RandomFloats(n + 1, 2);
      auto expected = acc;
      for (int64_t i = 0; i < n; ++i) expected[i] += src[i + offset];
      EXPECT_TRUE(AddAndCheck(src.data() + offset, acc.data(), n));
      ExpectSameBits(acc, expected);
    }
  }
}

TEST(SumAndCheck, SumsAtEverySizeAndOffset) {
  for (const int64_t n : kTestSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto a = RandomFloats(n, 1);
      const auto b = RandomFloats(n + offset, 2);
      std::vector<float> sum(n + 1, 7.0f), expected = a;
      for (int64_t i = 0; i < n; ++i) expected[i] += b[i + offset];
      EXPECT_TRUE(SumAndCheck(a.data(), b.data() + offset, sum.data(), n));
      EXPECT_EQ(sum[n], 7.0f) << "wrote beyond the end";
      sum.pop_back();
      ExpectSameBits(sum, expected);
    }
  }
}

TEST(SumAndCheck, ChecksOnlyItsSecondOperand) {
  const float fine = 1.0f, bad = std::numeric_limits<float>::infinity();
  float sum = 0;
  EXPECT_TRUE(SumAndCheck(&bad, &fine, &sum, 1));
  EXPECT_FALSE(SumAndCheck(&fine, &bad, &sum, 1));
  EXPECT_EQ(sum, bad);
}

TEST(AllFinite, HoldsForNone) { EXPECT_TRUE(AllFinite(nullptr, 0)); }

TEST(AddAndCheck, NoticesEveryElementThatIsNotFinite) {
  using Limits = std::numeric_limits<float>;
  for (const float bad :
       {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
    for (int64_t at = 0; at < 100; ++at) {
      std::vector<float> src(100, 1.0f);
      std::vector<float> acc(100, 0.0f), sum(100);
      src[at] = bad;
      ASSERT_FALSE(AddAndCheck(src.data(), acc.data(), 100)) << bad << " at " << at;
      ASSERT_FALSE(CopyAndCheck(src.data(), acc.data(), 100)) << bad << " at " << at;
      ASSERT_FALSE(SumAndCheck(acc.data(), src.data(), sum.data(), 100)) << bad << " at " << at;
      ASSERT_FALSE(AllFinite(src.data(), 100)) << bad << " at " << at;
      ASSERT_TRUE(CopyAndCheck(src.data(), acc.data(), at));
      ASSERT_TRUE(AllFinite(src.data(), at));
    }
  }
  // The largest and the smallest numbers are finite; an overflowing sum is not an element of src.
  const std::vector<float> edge = {Limits::max(), Limits::lowest(), Limits::denorm_min(), -0.0f};
  std::vector<float> acc = edge;
  EXPECT_TRUE(AddAndCheck(edge.data(), acc.data(), 4));
  EXPECT_TRUE(AllFinite(edge.data(), 4));
}

TEST(TreeFold, PairsNeighboursLevelByLevel) {
  for (size_t n = 0; n <= 70; ++n) {
    const auto leaves = ToDouble(RandomFloats(static_cast<int64_t>(n), 1, 1e6f));
    std::vector<double> thirds;  // makes sums round
    for (const double leaf : leaves) thirds.push_back(leaf / 3);
    EXPECT_EQ(TreeFold(thirds), TreeFoldRef(thirds)) << n;
  }
}

TEST(SumOfSquares, MatchesTheExactSum) {
  for (const int64_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025, 5000, 262144}) {
    const auto x = RandomFloats(n, 1, 100.0f);
    long double exact = 0;
    for (const float value : x) exact += static_cast<long double>(value) * value;
    EXPECT_NEAR(SumOfSquares(x.data(), n), static_cast<double>(exact),
                1e-13 * static_cast<double>(exact))
        << n;
  }
}

TEST(SumOfSquares, SumsOfRangesFoldToSumOfWhole) {
  for (const int64_t n : {1, 1024, 5000, 100000, 262144, 300001}) {
    const auto x = RandomFloats(n, 3);
    const double whole = SumOfSquares(x.data(), n);
    for (const int64_t range : {1024, 2048, 16384, 131072, 524288}) {
      std::vector<double> sums;
      for (int64_t i = 0; i < n; i += range) {
        sums.push_back(SumOfSquares(x.data() + i, std::min(range, n - i)));
      }
      EXPECT_EQ(TreeFold(sums), whole) << n << " in ranges of " << range;
    }
  }
}

TEST(SumOfSquares, HasTheSameBitsAtAnyAlignment) {
  const auto x = RandomFloats(3000, 4);
  const double at_zero = SumOfSquares(x.data(), 3000);
  std::vector<float> moved(3007);
  for (const int64_t offset : {1, 2, 7}) {
    std::copy(x.begin(), x.end(), moved.begin() + offset);
    EXPECT_EQ(SumOfSquares(moved.data() + offset, 3000), at_zero);
  }
}

}  // namespace
}  // namespace tug::kernels
