#include "exchange/step_gate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tug {
namespace {

const std::vector<uint32_t> kCarried = {2, 1};

TEST(StepGateOf, OpensNothingBeforeTheJobGoes) {
  const StepGate gate = GateOf({.go = false, .pause = false, .final_version = 9}, kCarried);
  EXPECT_TRUE(gate.paused);
  EXPECT_EQ(gate.final_version, 0u);
}

TEST(StepGateOf, ShutsForAPause) {
  EXPECT_FALSE(GateOf({.go = true, .pause = false}, kCarried).paused);
  EXPECT_TRUE(GateOf({.go = true, .pause = true}, kCarried).paused);
}

TEST(StepGateOf, TakesTheClocksOfThoseThatAreCarriedAndTheLastOfAll) {
  const StepGate gate =
      GateOf({.go = true, .pause = true, .final_version = 6, .final_clocks = {9, 5, 4}}, kCarried);
  EXPECT_EQ(gate.final_version, 6u);
  EXPECT_EQ(gate.final_clocks, (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(gate.last_clock, 9u);
}

TEST(StepRules, APauseHoldsStepsUntilTheEndIsKnown) {
  const StepRules rules{.update_per_push = false, .steps = 9};
  EXPECT_TRUE(rules.MayBegin({.paused = false}, 12)) << "the end is known in good time";
  EXPECT_FALSE(rules.MayBegin({.paused = true}, 3));
  EXPECT_TRUE(rules.MayBegin({.paused = true, .final_version = 5}, 3));
  EXPECT_FALSE(rules.IsPastEnd({.final_version = 5}, 0, 4));
  EXPECT_TRUE(rules.IsPastEnd({.final_version = 5}, 0, 5));
}

TEST(StepRules, VirtualWorkersEndAtClocksOfTheirOwnWherePushesAreUpdates) {
  const StepRules rules{.update_per_push = true, .steps = 9};
  EXPECT_TRUE(rules.MayBegin({.paused = false}, 8));
  EXPECT_FALSE(rules.MayBegin({.paused = false}, 9));
  const StepGate known{.paused = true, .final_version = 9, .final_clocks = {7, 12}};
  EXPECT_TRUE(rules.MayBegin(known, 9));
  EXPECT_TRUE(rules.IsPastEnd(known, 0, 7));
  EXPECT_FALSE(rules.IsPastEnd(known, 1, 11));
}

}  // namespace
}  // namespace tug
