// SPDX-License-Identifier: Apache-2.0
#include "limits/bench_stats.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(SpreadOf, GivesTheMiddleAndTheEnds) {
  const Spread odd = SpreadOf({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(SpreadOf({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(SpreadOf({7}).median, 7);
}

TEST(FormatSpread, ShowsTheRangeBesideTheMedian) {
  EXPECT_EQ(FormatSpread(SpreadOf({1.26, 1.2, 1.3}), 1), "1.3 (1.2..1.3)");
  EXPECT_EQ(FormatSpread(SpreadOf({0.5, 1, 2}), 2), "1.00 (0.50..2.00)");
}

TEST(CpuSecondsOf, CallsOnce) {
  int calls = 0;
  EXPECT_GE(CpuSecondsOf([&] { ++calls; }), 0.0);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tug
