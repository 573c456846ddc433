// SPDX-License-Identifier: Apache-2.0
#include "worker/core/straggler.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

JobConfig Job(double slowdown, double probability, double pause_ms) {
  JobConfig config;
  config.set_seed(7);
  config.mutable_straggler()->set_virtual_worker(2);
  config.mutable_straggler()->set_slowdown(slowdown);
  config.mutable_straggler()->set_pause_probability(probability);
  config.mutable_straggler()->set_pause_ms(pause_ms);
  return config;
}

TEST(Straggler, SlowsOneVirtualWorkerDown) {
  const Straggler straggler(Job(4, 0, 0));
  EXPECT_EQ(straggler.Slowdown(2, absl::Milliseconds(10)), absl::Milliseconds(30));
  EXPECT_EQ(straggler.Slowdown(1, absl::Milliseconds(10)), absl::ZeroDuration());
  EXPECT_EQ(straggler.Pause(3, 2), absl::ZeroDuration());
}

TEST(Straggler, AddsNoDelayUnlessConfigured) {
  const Straggler straggler(Job(1, 0, 50));
  EXPECT_EQ(straggler.Slowdown(2, absl::Milliseconds(10)), absl::ZeroDuration());
  for (uint64_t clock = 0; clock < 100; ++clock) {
    EXPECT_EQ(straggler.Pause(clock, 2), absl::ZeroDuration());
  }
}

TEST(Straggler, PausesAsOftenAndAsLongAsIsSet) {
  const Straggler straggler(Job(1, 0.25, 80));
  int pauses = 0;
  absl::Duration total;
  for (uint64_t clock = 0; clock < 10000; ++clock) {
    const absl::Duration pause = straggler.Pause(clock, 1);
    if (pause == absl::ZeroDuration()) continue;
    ++pauses;
    total += pause;
  }
  EXPECT_NEAR(pauses, 2500, 4 * 44);  // four standard deviations
  EXPECT_NEAR(absl::ToDoubleMilliseconds(total) / pauses, 80, 4 * 80.0 / 50);
}

TEST(Straggler, PausesDependOnSeedClockAndVirtualWorkerOnly) {
  const Straggler one(Job(1, 0.5, 80));
  const Straggler again(Job(1, 0.5, 80));
  JobConfig other_seed = Job(1, 0.5, 80);
  other_seed.set_seed(8);
  const Straggler other(other_seed);
  int same_by_worker = 0;
  int same_by_seed = 0;
  for (uint64_t clock = 0; clock < 200; ++clock) {
    EXPECT_EQ(one.Pause(clock, 1), again.Pause(clock, 1));
    same_by_worker += one.Pause(clock, 1) == one.Pause(clock, 2) ? 1 : 0;
    same_by_seed += one.Pause(clock, 1) == other.Pause(clock, 1) ? 1 : 0;
  }
  EXPECT_LT(same_by_worker, 80);  // both are 0 in a quarter of the clocks
  EXPECT_LT(same_by_seed, 80);
}

}  // namespace
}  // namespace tug
