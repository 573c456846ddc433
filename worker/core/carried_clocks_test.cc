// SPDX-License-Identifier: Apache-2.0
#include "worker/core/carried_clocks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

CarriedClocks Clocks(SyncConfig::Policy policy, std::vector<uint64_t> clocks) {
  return {SyncModeOf(policy), /*steps=*/20, std::move(clocks)};
}

StepGate GateWithEnd(std::vector<uint64_t> final_clocks) {
  StepGate gate;
  gate.last_clock = *std::max_element(final_clocks.begin(), final_clocks.end());
  gate.final_clocks = std::move(final_clocks);
  return gate;
}

TEST(CarriedClocks, TheLowestTakesTheStep) {
  const CarriedClocks clocks = Clocks(SyncConfig::SSP, {4, 3, 3});
  EXPECT_EQ(clocks.StepClock(), 3u);
  EXPECT_THAT(clocks.TakersOf(3), ElementsAre(1, 2));
  EXPECT_EQ(clocks.Order(7, 3), (PullOrder{7, 3, false, 1, 2}));
}

TEST(CarriedClocks, FinishedVirtualWorkerRunsNoStep) {
  CarriedClocks clocks = Clocks(SyncConfig::SSP, {3, 5});
  clocks.SetGate(GateWithEnd({3, 6}));
  EXPECT_EQ(clocks.StepClock(), 5u);
  EXPECT_FALSE(clocks.AllFinished());
  EXPECT_THAT(clocks.TakersOf(3), ElementsAre());
  EXPECT_THAT(clocks.TakersOf(5), ElementsAre(1));
}

TEST(CarriedClocks, OrdersForTheStepThatFollows) {
  const CarriedClocks clocks = Clocks(SyncConfig::BSP, {3, 3});
  const std::vector<uint32_t> both = {0, 1}, first = {0};
  EXPECT_EQ(clocks.OrderAfter(1, 3, both), (PullOrder{1, 4, false, 0, 2}));
  EXPECT_EQ(clocks.OrderAfter(1, 3, first), (PullOrder{1, 3, false, 1, 1}));
}

TEST(CarriedClocks, AfterTheLastStepOrdersTheLastWeights) {
  const std::vector<uint32_t> both = {0, 1};
  CarriedClocks summed = Clocks(SyncConfig::BSP, {5, 5});
  summed.SetGate(GateWithEnd({6, 6}));
  EXPECT_EQ(summed.OrderAfter(1, 5, both), (PullOrder{1, 6, false}));
  // Contains all pushes before the job's last clock, which may be that of another worker.
  CarriedClocks applied = Clocks(SyncConfig::SSP, {5, 5});
  StepGate gate = GateWithEnd({6, 6});
  gate.last_clock = 9;
  applied.SetGate(gate);
  EXPECT_EQ(applied.OrderAfter(1, 5, both), (PullOrder{1, 9, true}));
}

TEST(CarriedClocks, SaysWhatIsSkipped) {
  CarriedClocks clocks = Clocks(SyncConfig::BACKUP, {3, 6});
  std::vector<SkippedSteps> skipped;
  clocks.SkipTo(5, skipped);
  EXPECT_THAT(clocks.all(), ElementsAre(5, 6));
  EXPECT_THAT(skipped, ElementsAre(FieldsAre(0, 3, 5)));
}

}  // namespace
}  // namespace tug
