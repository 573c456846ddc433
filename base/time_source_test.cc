// SPDX-License-Identifier: Apache-2.0
#include "base/time_source.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;

TEST(RealTime, NeverGoesBack) {
  const RealTime time;
  absl::Time last = time.Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = time.Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(SimulatedTime, RunsInOrderOfTimeThenOfScheduling) {
  SimulatedTime time;
  std::vector<int> order;
  time.Schedule(absl::Seconds(2), [&] { order.push_back(3); });
  time.Schedule(absl::Seconds(1), [&] { order.push_back(1); });
  time.Schedule(absl::Seconds(1), [&] { order.push_back(2); });
  while (time.RunNext()) {
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_EQ(time.Now(), absl::UnixEpoch() + absl::Seconds(2));
}

TEST(SimulatedTime, StandsStillBetweenEvents) {
  SimulatedTime time;
  absl::Time seen;
  time.Schedule(absl::Hours(1), [&] { seen = time.Now(); });
  EXPECT_EQ(time.Now(), absl::UnixEpoch());
  EXPECT_TRUE(time.RunNext());
  EXPECT_EQ(seen, absl::UnixEpoch() + absl::Hours(1));
  EXPECT_FALSE(time.RunNext());
}

TEST(SimulatedTime, AnEventMayScheduleOthersEvenAtTheSameInstant) {
  SimulatedTime time;
  int runs = 0;
  const std::function<void()> again = [&] {
    if (++runs < 5) time.Schedule(absl::ZeroDuration(), again);
  };
  time.Schedule(absl::Seconds(1), again);
  time.RunUntil(absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(runs, 5);
}

TEST(SimulatedTime, RunUntilATimeLeavesLaterEvents) {
  SimulatedTime time;
  int runs = 0;
  for (int s = 1; s <= 4; ++s) time.Schedule(absl::Seconds(s), [&] { ++runs; });
  time.RunUntil(absl::UnixEpoch() + absl::Milliseconds(2500));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(time.pending(), 2u);
  EXPECT_EQ(time.Now(), absl::UnixEpoch() + absl::Milliseconds(2500));
}

TEST(SimulatedTime, RunUntilAConditionStopsAsSoonAsItHolds) {
  SimulatedTime time;
  int runs = 0;
  for (int s = 1; s <= 4; ++s) time.Schedule(absl::Seconds(s), [&] { ++runs; });
  EXPECT_TRUE(time.RunUntil([&] { return runs == 3; }, absl::InfiniteFuture()));
  EXPECT_EQ(time.Now(), absl::UnixEpoch() + absl::Seconds(3));
  EXPECT_FALSE(time.RunUntil([&] { return runs == 9; }, absl::InfiniteFuture()));
}

}  // namespace
}  // namespace tug
