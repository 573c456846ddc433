// SPDX-License-Identifier: Apache-2.0
#include "base/clock_offset.h"

#include <cstdlib>
#include <random>

#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(ClockOffset, IsExactWhereBothWaysTakeEquallyLong) {
  ClockOffset clock;
  clock.Add(100 * kMs, 5100 * kMs + 3 * kMs, 106 * kMs);
  const auto estimate = clock.At(103 * kMs);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->offset_ns, 5000 * kMs);
  EXPECT_EQ(estimate->error_ns, 3 * kMs);
}

TEST(ClockOffset, TakesTheFastestExchange) {
  ClockOffset clock;
  clock.Add(0, 9 * kMs, 10 * kMs);                  // all delay on the way there
  clock.Add(20 * kMs, 20 * kMs + 1, 20 * kMs + 2);  // equal clocks
  clock.Add(40 * kMs, 41 * kMs, 60 * kMs);          // all delay on the way back
  const auto estimate = clock.At(60 * kMs);
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->offset_ns, 0);
  EXPECT_LE(estimate->error_ns, 2001);
}

TEST(ClockOffset, TrustsAnOldExchangeLess) {
  ClockOffset clock;
  clock.Add(0, kMs, 2 * kMs);  // fast, an hour ago
  const int64_t hour = int64_t{3'600'000} * kMs;
  clock.Add(hour, hour + 30 * kMs, hour + 40 * kMs);  // slow, now; the clocks have drifted by 10 ms
  EXPECT_EQ(clock.At(2 * kMs)->offset_ns, 0);
  EXPECT_EQ(clock.At(hour)->offset_ns, 10 * kMs);
}

TEST(ClockOffset, LeavesOutWhatCannotBe) {
  ClockOffset clock;
  clock.Add(10, 20, 9);
  EXPECT_FALSE(clock.At(0).has_value());
}

TEST(ClockOffset, OffsetIsWithinItsErrorForAnyPathDelays) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t offset = static_cast<int64_t>(random() % (2000 * kMs)) - 1000 * kMs;
    ClockOffset clock;
    int64_t now = static_cast<int64_t>(random() % (1000 * kMs));
    for (int i = 0; i < 100; ++i) {
      const auto there = static_cast<int64_t>(random() % (5 * kMs));
      const auto back = static_cast<int64_t>(random() % (5 * kMs));
      clock.Add(now, now + there + offset, now + there + back);
      now += 200 * kMs;
    }
    const auto estimate = clock.At(now);
    ASSERT_TRUE(estimate.has_value());
    EXPECT_LE(std::abs(estimate->offset_ns - offset), estimate->error_ns);
    EXPECT_LT(estimate->error_ns, 5 * kMs);
  }
}

}  // namespace
}  // namespace tug
