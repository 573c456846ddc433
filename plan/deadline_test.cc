// SPDX-License-Identifier: Apache-2.0
#include "plan/deadline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tug {
namespace {

constexpr double kMonthSeconds = 30 * 24 * 3600;

// The lectures: 6 x 175B x 300B / 160 TFLOPS / 30 days = 800 GPUs; without rounding, 760.
TEST(GpusForDeadline, Are760ForGpt3In30Days) {
  const double flops = TrainingFlops(175e9, 300e9, Recomputation::kNone);
  EXPECT_DOUBLE_EQ(flops, 3.15e23);
  const double gpus = GpusForDeadline(flops, 160e12, kMonthSeconds);
  EXPECT_NEAR(gpus, 759.5486, 1e-4);
  EXPECT_EQ(std::ceil(gpus), 760);
}

TEST(TrainingSeconds, IsTheDeadlineOfAsManyGpus) {
  const double flops = TrainingFlops(175e9, 300e9, Recomputation::kNone);
  EXPECT_NEAR(TrainingSeconds(flops, 160e12, GpusForDeadline(flops, 160e12, kMonthSeconds)),
              kMonthSeconds, 1e-6);
}

// The lectures say 30% to 40% longer; the count gives a third.
TEST(TrainingFlops, GrowByAThirdWithFullRecomputation) {
  EXPECT_DOUBLE_EQ(TrainingFlops(1e9, 1e9, Recomputation::kFull),
                   4.0 / 3 * TrainingFlops(1e9, 1e9, Recomputation::kSelective));
}

}  // namespace
}  // namespace tug
