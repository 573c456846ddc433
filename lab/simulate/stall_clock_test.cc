// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/stall_clock.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(StallClock, MeasuresTheTimeBetweenTwoStepsThatNothingBefalls) {
  const auto at = [](int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); };
  StallClock clock;
  clock.OnProgress(at(1));
  EXPECT_EQ(clock.longest(), absl::Seconds(1));
  clock.OnFault(at(2));
  clock.OnProgress(at(20));
  EXPECT_EQ(clock.longest(), absl::Seconds(1)) << "amid a fault";
  clock.OnFaultOver(at(50));
  clock.OnDisturbed(at(60));
  clock.OnProgress(at(63));
  EXPECT_EQ(clock.longest(), absl::Seconds(3));
  clock.OnProgress(at(64));
  EXPECT_EQ(clock.longest(), absl::Seconds(3));
}

}  // namespace
}  // namespace tug
