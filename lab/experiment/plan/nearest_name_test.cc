// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/nearest_name.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(NearestName, FindsWhatALetterMakes) {
  const std::vector<std::string> names = {"step_time", "batch_rate", "final_loss"};
  EXPECT_EQ(NearestName("step_tim", names), "step_time");
  EXPECT_EQ(NearestName("setp_time", names), "step_time");
  EXPECT_EQ(NearestName("FINAL_LOSS", names), "final_loss");
  EXPECT_EQ(DidYouMean("batch_rat", names), "; did you mean batch_rate?");
}

TEST(NearestName, FindsNothingThatIsFar) {
  EXPECT_EQ(NearestName("memory", {"step_time", "batch_rate"}), "");
  EXPECT_EQ(NearestName("ab", {"xy"}), "");
  EXPECT_EQ(NearestName("", {}), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'a'), {"aa"}), "") << "and takes no time";
  EXPECT_EQ(DidYouMean("memory", {}), "");
}

}  // namespace
}  // namespace tug
