// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(Check, PassesSilentlyAndSkipsTheMessage) {
  bool message_evaluated = false;
  TUG_CHECK(1 + 1 == 2) << (message_evaluated = true);
  TUG_CHECK_OK(absl::OkStatus()) << (message_evaluated = true);
  EXPECT_FALSE(message_evaluated);
}

TEST(Check, EvaluatesOperandsOnce) {
  int count = 0;
  TUG_CHECK_EQ(++count, 1);
  TUG_CHECK_LE(++count, 2);
  EXPECT_EQ(count, 2);
}

TEST(Check, NestsInUnbracedIfElse) {
  bool else_taken = false;
  if (std::vector<int>().size() == 1)
    TUG_CHECK(false);
  else
    else_taken = true;
  EXPECT_TRUE(else_taken);
}

TEST(CheckDeathTest, NamesPlaceConditionAndMessage) {
  EXPECT_DEATH(TUG_CHECK(2 < 1) << "segment " << 7,
               "base/check_test.cc:[0-9]+: check failed: 2 < 1 segment 7");
}

TEST(CheckDeathTest, PrintsBothOperands) {
  const std::string name = "lane";
  EXPECT_DEATH(TUG_CHECK_EQ(name, "host"), "name == \"host\" \\(lane vs host\\)");
  EXPECT_DEATH(TUG_CHECK_GE(3, 4), "3 >= 4 \\(3 vs 4\\)");
}

TEST(CheckDeathTest, PrintsTheStatus) {
  EXPECT_DEATH(TUG_CHECK_OK(absl::NotFoundError("no such view")), "NOT_FOUND: no such view");
}

}  // namespace
}  // namespace tug
