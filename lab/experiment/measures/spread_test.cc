// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

TEST(Spread, SpreadOfFewValuesIsSmallestAndLargest) {
  const auto spread = SpreadOfRepeats({3, 1, 2});
  ASSERT_TRUE(spread.has_value());
  EXPECT_EQ(spread->median, 2);
  EXPECT_EQ(spread->low, 1);
  EXPECT_EQ(spread->high, 3);
  EXPECT_EQ(SpreadOfRepeats({7})->low, 7);
  EXPECT_EQ(SpreadOfRepeats({7})->high, 7);
}

TEST(Spread, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(SpreadOfRepeats({}).has_value());
  EXPECT_FALSE(SpreadOfRepeats({nan, std::numeric_limits<double>::infinity()}).has_value());
  EXPECT_EQ(SpreadOfRepeats({nan, 4})->count, 1u);
}

TEST(Spread, DoesNotDependOnTheOrderOfValues) {
  std::vector<double> values = {5, 1, 4, 9, 2, 6, 3};
  const auto spread = SpreadOfRepeats(values);
  std::sort(values.begin(), values.end());
  const auto sorted = SpreadOfRepeats(values);
  EXPECT_EQ(spread->low, sorted->low);
  EXPECT_EQ(spread->high, sorted->high);
  EXPECT_LE(spread->low, spread->median);
  EXPECT_LE(spread->median, spread->high);
}

// A 95% interval holds the true median about that often.
TEST(Spread, HoldsTheMedianAsOftenAsItSays) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(10, 2);
  int held = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> values(21);
    for (double& value : values) value = normal(random);
    const auto spread = SpreadOfRepeats(values);
    held += spread->low <= 10 && 10 <= spread->high;
  }
  EXPECT_GE(held, 87);
}

TEST(Spread, SaysWhatItIs) {
  EXPECT_THAT(SpreadMeaning(1), HasSubstr("without a spread"));
  EXPECT_THAT(SpreadMeaning(3), HasSubstr("smallest"));
  EXPECT_THAT(SpreadMeaning(kMinBootstrapped), HasSubstr("bootstrap"));
  EXPECT_EQ(IntervalMeaning(1), "");
  EXPECT_THAT(IntervalMeaning(3), HasSubstr("range"));
  EXPECT_THAT(IntervalMeaning(kMinBootstrapped), HasSubstr("95%"));
}

TEST(PairedComparison, RatiosExcludeVariationCommonToARepeat) {
  const auto compared =
      ComparePairs({{5, 10}, {50, 100}, {1, 2}}, Comparing::kRatio, /*lower_is_better=*/true);
  ASSERT_TRUE(compared.has_value());
  EXPECT_EQ(compared->spread.low, 0.5);
  EXPECT_EQ(compared->spread.high, 0.5);
  EXPECT_EQ(compared->better, 3u);
  EXPECT_EQ(compared->worse, 0u);
  EXPECT_DOUBLE_EQ(compared->p_value, 0.25) << "two tails of 1 / 8";
}

TEST(PairedComparison, CountsNeitherWayWhereBothAreEqual) {
  const auto compared =
      ComparePairs({{2, 2}, {3, 2}, {1, 2}}, Comparing::kDifference, /*lower_is_better=*/false);
  ASSERT_TRUE(compared.has_value());
  EXPECT_EQ(compared->spread.median, 0);
  EXPECT_EQ(compared->better, 1u);
  EXPECT_EQ(compared->worse, 1u);
  EXPECT_DOUBLE_EQ(compared->p_value, 1);
}

TEST(PairedComparison, LeavesOutPairsWithoutAValue) {
  const double nan = std::nan("");
  EXPECT_FALSE(ComparePairs({{nan, 1}, {1, nan}, {1, 0}}, Comparing::kRatio, true).has_value());
  EXPECT_EQ(ComparePairs({{nan, 1}, {1, 1}}, Comparing::kRatio, true)->spread.count, 1u);
}

}  // namespace
}  // namespace tug
