// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule_points.h"

#include <gtest/gtest.h>

#include <bit>

namespace tug {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

TEST(SchedulePoints, CutFromASegmentToTheLargestBlockAndCreditToTheModel) {
  EXPECT_EQ(SchedulePoints(kMiB, 3 * kMiB, 5 * kMiB),
            (std::vector<SchedulePoint>{{kMiB, kMiB},
                                        {kMiB, 2 * kMiB},
                                        {kMiB, 4 * kMiB},
                                        {kMiB, 8 * kMiB},
                                        {2 * kMiB, 2 * kMiB},
                                        {2 * kMiB, 4 * kMiB},
                                        {2 * kMiB, 8 * kMiB},
                                        {4 * kMiB, 4 * kMiB},
                                        {4 * kMiB, 8 * kMiB}}));
}

TEST(SchedulePoints, KeepToTheLimitsOfAJob) {
  for (const SchedulePoint& point : SchedulePoints(1024, 3000 * kMiB, 5000 * kMiB)) {
    EXPECT_GE(point.partition_bytes, 4 * kKiB);
    EXPECT_LE(point.partition_bytes, 32 * kMiB);
    EXPECT_GE(point.credit_bytes, std::max(point.partition_bytes, 16 * kKiB));
    EXPECT_LE(point.credit_bytes, 8192 * kMiB);
    EXPECT_TRUE(std::has_single_bit(point.partition_bytes));
    EXPECT_TRUE(std::has_single_bit(point.credit_bytes));
  }
}

TEST(SchedulePoints, AreOneWhereAModelIsSmallerThanASegment) {
  EXPECT_EQ(SchedulePoints(kMiB, 300, 700), (std::vector<SchedulePoint>{{kMiB, kMiB}}));
}

TEST(PullCreditBytes, IsTheJobsUnderItsOwnPointAndElseThatOfPushes) {
  CommConfig comm;
  comm.set_partition_bytes(4096);
  comm.set_credit_bytes(65536);
  comm.set_pull_credit_bytes(7);
  EXPECT_EQ(PullCreditBytes(OwnPoint(comm), comm), 7u);
  EXPECT_EQ(PullCreditBytes({8192, 65536}, comm), 65536u);
  EXPECT_EQ(PullCreditBytes({4096, 32768}, comm), 32768u);
}

}  // namespace
}  // namespace tug
