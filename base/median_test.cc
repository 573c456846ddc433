// SPDX-License-Identifier: Apache-2.0
#include "base/median.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(Median, IsTheMiddleOfAnOddCount) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({3, 1, 2}), 2);
}

TEST(Median, IsTheMeanOfTheTwoInTheMiddleOfAnEvenCount) {
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({2, 1}), 1.5);
}

TEST(Median, IsNanWithoutValues) { EXPECT_TRUE(std::isnan(Median({}))); }

}  // namespace
}  // namespace tug
