// SPDX-License-Identifier: Apache-2.0
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

TEST(StepGateOf, WithoutClocksAllEndAtTheFinalVersion) {
  const StepGate gate = GateOf({.go = true, .pause = false, .final_version = 6}, kCarried);
  EXPECT_EQ(gate.final_clocks, (std::vector<uint64_t>{6, 6}));
  EXPECT_EQ(gate.last_clock, 6u);
  EXPECT_FALSE(GateOf({.go = true, .pause = false}, kCarried).FinalKnown());
}

constexpr uint64_t kSteps = 9;

TEST(StepGate, APauseHoldsStepsUntilTheEndIsKnown) {
  EXPECT_TRUE(StepGate{.paused = false}.MayBegin(8, kSteps));
  EXPECT_FALSE(StepGate{.paused = false}.MayBegin(9, kSteps));
  EXPECT_FALSE(StepGate{.paused = true}.MayBegin(3, kSteps));
  EXPECT_FALSE(StepGate{.paused = true}.IsPastEnd(0, 12));
}

TEST(StepGate, VirtualWorkersEndAtClocksOfTheirOwn) {
  const StepGate known{.paused = true, .final_version = 9, .final_clocks = {7, 12}};
  EXPECT_TRUE(known.MayBegin(9, kSteps));
  EXPECT_TRUE(known.IsPastEnd(0, 7));
  EXPECT_FALSE(known.IsPastEnd(1, 11));
}

}  // namespace
}  // namespace tug
