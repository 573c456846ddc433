// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kMiB = 1 << 20;
using Surface = std::function<double(const SchedulePoint&)>;

Tuner::Options Settings(uint32_t trials = 20, uint32_t steps = 3) {
  return {.points = SchedulePoints(64 << 10, 32 * kMiB, 100 * kMiB),
          .own = {4 * kMiB, 32 * kMiB},
          .trials = trials,
          .steps_per_trial = steps};
}

// Minimum at 512 KiB and 4 MiB: 0.1 s.
double Bowl(const SchedulePoint& point) {
  const double x = std::log2(static_cast<double>(point.partition_bytes)) - 19;
  const double y = std::log2(static_cast<double>(point.credit_bytes)) - 22;
  return 0.1 * std::exp(0.05 * x * x + 0.03 * y * y);
}

// Runs steps on `surface` until the tuner has settled.
void Settle(Tuner& tuner, const Surface& surface) {
  for (int step = 0; !tuner.is_settled(); ++step) {
    ASSERT_LT(step, 100000);
    tuner.Observe(surface(tuner.Suggest()));
  }
}

TEST(Tuner, TriesTheJobsOwnPointFirstAndSettlesAfterItsTrials) {
  Tuner tuner(Settings(20, 2));
  EXPECT_EQ(tuner.Suggest(), (SchedulePoint{4 * kMiB, 32 * kMiB}));
  std::vector<uint32_t> numbers;
  for (int step = 1; step <= 40; ++step) {
    const SchedulePoint point = tuner.Suggest();
    const Tuner::Event event = tuner.Observe(Bowl(point));
    if (step % 2 != 0) {
      EXPECT_EQ(event, Tuner::Event::kNone) << "step " << step;
      EXPECT_EQ(tuner.Suggest(), point) << "within a trial";
      continue;
    }
    EXPECT_EQ(event, step == 40 ? Tuner::Event::kSettled : Tuner::Event::kTrial);
    numbers.push_back(tuner.trial().number);
    EXPECT_EQ(tuner.trial().point, point);
    EXPECT_NEAR(tuner.trial().seconds, Bowl(point), 1e-12);
  }
  EXPECT_EQ(numbers.size(), 20u);
  EXPECT_EQ(numbers.back(), 20u);
  EXPECT_EQ(tuner.settled().point, tuner.Suggest());
  EXPECT_EQ(tuner.settled().point, (SchedulePoint{512 << 10, 4 * kMiB}));
  EXPECT_NEAR(tuner.settled().seconds, 0.1, 0.005);
  EXPECT_NEAR(tuner.settled().first_seconds, Bowl({4 * kMiB, 32 * kMiB}), 0.02);
}

TEST(Tuner, TakesTheJobsOwnPointWhereItIsNoneOfTheGrid) {
  Tuner::Options options = Settings();
  options.own = {3'000'000, 7'000'000};
  Tuner tuner(options);
  EXPECT_EQ(tuner.Suggest(), options.own);
  EXPECT_EQ(tuner.points().size(), options.points.size() + 1);
  Settle(tuner, [&](const SchedulePoint& point) { return point == options.own ? 0.1 : 0.2; });
  EXPECT_EQ(tuner.settled().point, options.own);
}

TEST(Tuner, SettlesOnTheOnlyPointThatOneTrialLeaves) {
  Tuner tuner(Settings(1, 1));
  EXPECT_EQ(tuner.Observe(0.5), Tuner::Event::kSettled);
  EXPECT_EQ(tuner.Suggest(), (SchedulePoint{4 * kMiB, 32 * kMiB}));
  EXPECT_NEAR(tuner.settled().seconds, 0.5, 1e-3);
}

TEST(Tuner, GoesOnTryingWhenEveryPointHasBeenTried) {
  Tuner::Options options = Settings(50, 1);
  options.points = SchedulePoints(kMiB, 2 * kMiB, 4 * kMiB);
  options.own = options.points.front();
  Tuner tuner(options);
  Settle(tuner, Bowl);
  EXPECT_EQ(tuner.settled().trials, 50u);
  EXPECT_EQ(tuner.settled().point, (SchedulePoint{kMiB, 4 * kMiB}));
}

TEST(Tuner, TriesPredictedBestPointForAnyUnitOfPredictions) {
  for (const double unit : {1e-3, 1.0, 40.0}) {
    Tuner tuner(Settings(20, 1));
    tuner.Observe(Bowl(tuner.Suggest()));
    std::vector<double> seconds;
    for (const SchedulePoint& point : tuner.points()) seconds.push_back(unit * Bowl(point));
    tuner.SetPrediction(std::move(seconds));
    tuner.Observe(Bowl(tuner.Suggest()));
    EXPECT_EQ(tuner.trial().point, (SchedulePoint{512 << 10, 4 * kMiB})) << unit;
    EXPECT_NEAR(tuner.trial().predicted, 0.1, 0.02) << unit;
  }
}

TEST(Tuner, IsAFunctionOfWhatItObserved) {
  Tuner a(Settings(30, 1)), b(Settings(30, 1));
  for (int step = 0; step < 200; ++step) {
    ASSERT_EQ(a.Suggest(), b.Suggest());
    const double seconds = Bowl(a.Suggest()) * (1 + 0.05 * std::sin(step * 7));
    EXPECT_EQ(a.Observe(seconds), b.Observe(seconds));
  }
}

TEST(Tuner, EndsATrialThatIsHopelessAfterTwoSteps) {
  Tuner tuner(Settings(20, 10));
  for (int step = 0; step < 10; ++step) tuner.Observe(0.1);
  ASSERT_EQ(tuner.trial().number, 1u);
  EXPECT_EQ(tuner.Observe(5), Tuner::Event::kNone);
  EXPECT_EQ(tuner.Observe(5), Tuner::Event::kTrial);
  EXPECT_EQ(tuner.trial().seconds, 5);
}

TEST(Tuner, SingleSlowStepDoesNotSpoilATrial) {
  Tuner tuner(Settings(2, 5));
  for (const double seconds : {0.1, 0.1, 7.0, 0.1, 0.1}) tuner.Observe(seconds);
  EXPECT_NEAR(tuner.trial().seconds, 0.1, 1e-12);
}

class TunerDrift : public testing::TestWithParam<double> {};

TEST_P(TunerDrift, StartsAgainFromWhereItIsWhenStepsChangeForGood) {
  Tuner tuner(Settings(10, 2));
  Settle(tuner, Bowl);
  const SchedulePoint settled = tuner.Suggest();
  for (int step = 0; step < 100; ++step) {
    const double noise = 1 + 0.05 * std::sin(step * 5);
    ASSERT_EQ(tuner.Observe(0.1 * noise), Tuner::Event::kNone);
  }
  // A short period of different times is not drift.
  for (int step = 0; step < 8; ++step) ASSERT_EQ(tuner.Observe(0.5), Tuner::Event::kNone);
  for (int step = 0; step < 40; ++step) ASSERT_EQ(tuner.Observe(0.1), Tuner::Event::kNone);
  int steps = 0;
  while (tuner.Observe(0.1 * GetParam()) != Tuner::Event::kDrift) ASSERT_LT(++steps, 40);
  EXPECT_NEAR(tuner.settled_median(), 0.1, 0.01);
  EXPECT_NEAR(tuner.newest_median(), 0.1 * GetParam(), 0.01);
  EXPECT_FALSE(tuner.is_settled());
  EXPECT_EQ(tuner.Suggest(), settled);
  Settle(tuner, [](const SchedulePoint& point) { return GetParam() * Bowl(point); });
  EXPECT_EQ(tuner.settled().trials, 10u);
  for (int step = 0; step < 100; ++step) {
    ASSERT_EQ(tuner.Observe(GetParam() * Bowl(tuner.Suggest())), Tuner::Event::kNone);
  }
}

INSTANTIATE_TEST_SUITE_P(SlowerAndFaster, TunerDrift, testing::Values(1.5, 0.6));

TEST(Tuner, DoesNotStartAgainForAChangeWithinTheDrift) {
  Tuner tuner(Settings(5, 2));
  Settle(tuner, Bowl);
  const double seconds = Bowl(tuner.Suggest());
  for (int step = 0; step < 50; ++step) tuner.Observe(seconds);
  for (int step = 0; step < 200; ++step) {
    ASSERT_EQ(tuner.Observe(1.15 * seconds), Tuner::Event::kNone);
  }
}

}  // namespace
}  // namespace tug
