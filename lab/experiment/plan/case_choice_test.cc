// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/case_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kFile[] = R"(
name: "choice"
question: "?"
job { data { tokenizer: CHARACTER path: "text.txt" } }
axes { name: "x" value { label: "a" } value { label: "a, b" } }
axes { name: "y" value { label: "1" } value { label: "2" } }
)";

std::vector<bool> Chosen(const std::string& text) {
  const auto plan = PlanExperiment({.text = kFile, .name = "a"});
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto chosen = ChooseCases(*plan, text);
  if (chosen.ok()) return *chosen;
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("--case " + text));
  EXPECT_THAT(std::string(chosen.status().message()), HasSubstr("--dry-run"));
  return {};
}

TEST(ChooseCases, TakesAllWithoutANameAndOneByItsWhole) {
  EXPECT_THAT(Chosen(""), ElementsAre(true, true, true, true));
  EXPECT_THAT(Chosen("x=a, y=2"), ElementsAre(false, true, false, false));
  EXPECT_THAT(Chosen("x=a, b, y=1"), ElementsAre(false, false, true, false));
}

TEST(ChooseCases, TakesThoseThatHaveAllValues) {
  EXPECT_THAT(Chosen("y=2"), ElementsAre(false, true, false, true));
  EXPECT_THAT(Chosen("x=a"), ElementsAre(true, true, false, false)) << "and not \"a, b\"";
  EXPECT_THAT(Chosen(" y=2 ,x=a"), ElementsAre(false, true, false, false));
}

TEST(KeepCases, DropsTheOthersAndKnowsWhichValuesAreLeft) {
  auto plan = PlanExperiment({.text = kFile, .name = "a"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  KeepCases({false, true, false, false}, *plan);
  ASSERT_EQ(plan->cases.size(), 1u);
  EXPECT_EQ(plan->cases[0].name, "x=a, y=2");
  EXPECT_THAT(plan->ValuesInCases(0), ElementsAre(0));
  EXPECT_THAT(plan->ValuesInCases(1), ElementsAre(1));
  EXPECT_EQ(plan->axes[1].labels.size(), 2u);
}

TEST(ChooseCases, RefusesWhatNoCaseHas) {
  for (const char* none : {"y=3", "x=b", ",", "x", "y=1, y=2"}) {
    EXPECT_THAT(Chosen(none), ElementsAre()) << none;
  }
}

}  // namespace
}  // namespace tug
