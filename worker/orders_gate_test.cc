#include "worker/orders_gate.h"

#include <gtest/gtest.h>

#include <vector>

namespace tug {
namespace {

const std::vector<uint32_t> kCarried = {2, 1};

TEST(OrdersGate, OpensNothingBeforeTheJobGoes) {
  const StepGate gate = GateOf({.go = false, .pause = false, .final_version = 9}, kCarried);
  EXPECT_TRUE(gate.paused);
  EXPECT_EQ(gate.final_version, 0u);
}

TEST(OrdersGate, ShutsForAPause) {
  EXPECT_FALSE(GateOf({.go = true, .pause = false}, kCarried).paused);
  EXPECT_TRUE(GateOf({.go = true, .pause = true}, kCarried).paused);
}

TEST(OrdersGate, TakesTheClocksOfThoseThatAreCarriedAndTheLastOfAll) {
  const StepGate gate =
      GateOf({.go = true, .pause = true, .final_version = 6, .final_clocks = {9, 5, 4}}, kCarried);
  EXPECT_EQ(gate.final_version, 6u);
  EXPECT_EQ(gate.final_clocks, (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(gate.last_clock, 9u);
}

}  // namespace
}  // namespace tug
