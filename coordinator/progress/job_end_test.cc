// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/job_end.h"

#include <numeric>

#include "config/sync_mode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

JobConfig Config(SyncConfig::Policy policy, uint64_t steps, uint32_t staleness = 4) {
  JobConfig config;
  config.mutable_sync()->set_policy(policy);
  config.mutable_sync()->set_staleness(staleness);
  config.mutable_train()->set_steps(steps);
  config.mutable_fault()->set_heartbeat_ms(200);
  return config;
}

uint64_t Sum(const std::vector<uint64_t>& clocks) {
  return std::accumulate(clocks.begin(), clocks.end(), uint64_t{0});
}

TEST(JobEnd, BspEndIsKnownFromTheBeginning) {
  for (const auto policy : {SyncConfig::BSP, SyncConfig::BACKUP}) {
    JobEnd end(Config(policy, 10), 0);
    EXPECT_EQ(end.final_version(), 10u);
    end.Update(std::vector<VirtualWorkerPace>{{9, 9, 1}, {9, 9, 1}}, false);
    EXPECT_FALSE(end.pausing());
    EXPECT_THAT(end.final_clocks(), IsEmpty());
  }
}

TEST(JobEnd, StoppedBspEndsAtLatestBegunStep) {
  JobEnd end(Config(SyncConfig::BSP, 10), 0);
  end.RequestStop();
  EXPECT_TRUE(end.pausing());
  const std::vector<VirtualWorkerPace> paces = {{5}, {6}, {4}};
  end.Update(paces, false);
  EXPECT_FALSE(end.final_version().has_value());
  end.Update(paces, true);
  EXPECT_EQ(end.final_version(), 6u);
  EXPECT_FALSE(end.pausing());
  end.RequestStop();
  EXPECT_EQ(end.final_version(), 6u) << "again: changes nothing";
}

TEST(JobEnd, AspPausesBeforeTheEndAndAssignsRestBySpeed) {
  JobEnd end(Config(SyncConfig::ASP, 100), 0);
  EXPECT_FALSE(end.final_version().has_value());
  // An order takes up to 0.6 s: 6 steps of the fast virtual workers.
  end.Update(std::vector<VirtualWorkerPace>{{90, 90, 0.1}, {90, 90, 0.1}, {22, 22, 0.4}}, false);
  EXPECT_FALSE(end.pausing());
  end.Update(std::vector<VirtualWorkerPace>{{94, 94, 0.1}, {94, 93, 0.1}, {24, 23, 0.4}}, false);
  EXPECT_TRUE(end.pausing());
  EXPECT_FALSE(end.final_version().has_value());
  end.Update(std::vector<VirtualWorkerPace>{{99, 96, 0.1}, {97, 95, 0.1}, {24, 23, 0.4}}, true);
  EXPECT_EQ(end.final_version(), 100u);
  EXPECT_FALSE(end.pausing());
  EXPECT_EQ(Sum(end.final_clocks()), 300u);
  // 80 steps remain: 9 for the slow one, about 35 for each fast one.
  EXPECT_NEAR(static_cast<double>(end.final_clocks()[2]), 32, 1);
  EXPECT_NEAR(static_cast<double>(end.final_clocks()[0]), 99 + 35.5, 1);
}

TEST(JobEnd, SspAssignsRemainingStepsToLaggingVirtualWorkers) {
  JobEnd end(Config(SyncConfig::SSP, 20), 0);
  end.Update(std::vector<VirtualWorkerPace>{{20, 19, 0.1}, {18, 18, 0.1}, {16, 15, 0.4}}, true);
  ASSERT_EQ(end.final_version(), 20u);
  EXPECT_THAT(end.final_clocks(), ElementsAre(20, 20, 20));
}

TEST(JobEnd, StoppedAspEndsAtNextWholeStep) {
  JobEnd end(Config(SyncConfig::ASP, 1000), 0);
  end.RequestStop();
  end.Update(std::vector<VirtualWorkerPace>{{12, 10, 0.1}, {11, 10, 0.1}, {3, 2, 0.4}}, true);
  EXPECT_EQ(end.final_version(), 9u) << "26 of 27 pushes";
  EXPECT_EQ(Sum(end.final_clocks()), 27u);
  EXPECT_GE(end.final_clocks()[0], 12u);
  EXPECT_GE(end.final_clocks()[1], 11u);
}

TEST(JobEnd, AStopOfARunThatGoesOnKeepsWhatWasBegunSince) {
  // Two of the checkpoint's 20 pushes are repeated.
  std::vector<VirtualWorkerPace> paces = {{.begun = 12, .reported = 12, .step_seconds = 0},
                                          {.begun = 7, .reported = 6, .step_seconds = 0}};
  JobEnd end(Config(SyncConfig::ASP, 1000), 10);
  end.RequestStop();
  end.Update(paces, true);
  EXPECT_EQ(end.final_version(), 11u);
  EXPECT_EQ(Sum(end.final_clocks()), 22u);

  JobEnd at_once(Config(SyncConfig::ASP, 1000), 10);
  at_once.RequestStop();
  for (VirtualWorkerPace& pace : paces) pace.idle = true;
  at_once.Update(paces, true);
  EXPECT_EQ(at_once.final_version(), 10u) << "nobody has begun a step";
}

TEST(JobEnd, AStopAfterTheClocksAreDealtChangesNothing) {
  JobEnd end(Config(SyncConfig::ASP, 10), 0);
  end.Update(std::vector<VirtualWorkerPace>{{10, 9, 0.1}, {8, 8, 0.1}}, true);
  const std::vector<uint64_t> clocks = end.final_clocks();
  end.RequestStop();
  EXPECT_EQ(end.final_version(), 10u);
  EXPECT_EQ(end.final_clocks(), clocks);
  EXPECT_FALSE(end.pausing());
}

TEST(DealClocks, AddsUpToTheTotalAndTakesNothingBack) {
  for (const uint64_t max_lead : {uint64_t{2}, kMaxLead}) {
    for (uint64_t total = 40; total < 80; ++total) {
      const std::vector<VirtualWorkerPace> paces = {{20, 19, 0.1}, {10, 9, 0.3}, {12, 11, 0}};
      const std::vector<uint64_t> clocks = DealClocks(paces, total, max_lead);
      EXPECT_EQ(Sum(clocks), std::max<uint64_t>(total, 42));
      for (size_t v = 0; v < 3; ++v) EXPECT_GE(clocks[v], paces[v].begun);
    }
  }
}

TEST(DealClocks, ComesToAnEndHoweverFarApartSpeedsAre) {
  const std::vector<VirtualWorkerPace> paces = {{5, 5, 1e-6}, {5, 5, 1e6}, {5, 5, 1e-300}};
  const std::vector<uint64_t> clocks = DealClocks(paces, 3'000'000'000, kMaxLead);
  EXPECT_EQ(Sum(clocks), 3'000'000'000u);
  EXPECT_EQ(clocks[1], 5u);
}

}  // namespace
}  // namespace tug
