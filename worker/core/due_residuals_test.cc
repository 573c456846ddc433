// SPDX-License-Identifier: Apache-2.0
#include "worker/core/due_residuals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DueResiduals, AreOfTheIntervalAndTheLastVersion) {
  DueResiduals due({.interval = 5, .start_version = 5});
  EXPECT_THAT(due.AtClock(3, 5, 0), IsEmpty()) << "the timeline begins there";
  EXPECT_THAT(due.AtClock(3, 9, 0), IsEmpty());
  EXPECT_THAT(due.AtClock(3, 10, 0), ElementsAre(10));
  EXPECT_THAT(due.AtClock(3, 10, 0), IsEmpty());
  EXPECT_THAT(due.AtClock(3, 12, 12), ElementsAre(12));
  EXPECT_THAT(due.AtClock(3, 12, 12), IsEmpty());
  EXPECT_THAT(due.AtClock(4, 12, 12), ElementsAre(10, 12)) << "each for itself";
}

TEST(DueResiduals, TheLastVersionMayBeKnownAfterItWasPassed) {
  DueResiduals due({.interval = 5});
  EXPECT_THAT(due.AtClock(0, 7, 0), ElementsAre(5));
  EXPECT_THAT(due.AtClock(0, 7, 7), ElementsAre(7));
  EXPECT_THAT(due.AtClock(0, 7, 7), IsEmpty());
  EXPECT_THAT(due.AtClock(1, 10, 0), ElementsAre(5, 10));
  EXPECT_THAT(due.AtClock(1, 10, 10), IsEmpty()) << "written already";
}

TEST(DueResiduals, WithoutAnIntervalThereIsTheLastOneOnly) {
  DueResiduals due({});
  EXPECT_THAT(due.AtClock(0, 1000, 0), IsEmpty());
  EXPECT_THAT(due.AtClock(0, 1001, 1001), ElementsAre(1001));
}

TEST(DueResiduals, NewestVersionsOfMovedVirtualWorkerAreDueAgain) {
  DueResiduals due({.interval = 1});
  EXPECT_THAT(due.AtClock(2, 3, 0), ElementsAre(1, 2, 3));
  due.Forget(2);
  EXPECT_THAT(due.AtClock(2, 100, 0), ElementsAre(93, 94, 95, 96, 97, 98, 99, 100));
}

TEST(DueResiduals, AspVirtualWorkerPassesVersionWithItsWeights) {
  DueResiduals due({.interval = 5, .start_version = 10, .mode = SyncModeOf(SyncConfig::ASP)});
  EXPECT_THAT(due.AtClock(0, 100, 0), IsEmpty());
  due.OnWeights(16);
  EXPECT_THAT(due.AtClock(0, 12, 0), ElementsAre(15));
  due.OnWeights(14);
  EXPECT_THAT(due.AtClock(1, 12, 0), ElementsAre(15)) << "the newest weights count";
  EXPECT_THAT(due.AtClock(0, 13, 0), IsEmpty());
}

TEST(DueResiduals, AspLastVersionIsDueOnlyWithLastPush) {
  for (const uint64_t final_version : {20, 22}) {
    DueResiduals due({.interval = 5, .mode = SyncModeOf(SyncConfig::ASP)});
    due.OnWeights(17);
    EXPECT_THAT(due.AtClock(0, 20, final_version), ElementsAre(5, 10, 15));
    EXPECT_EQ(due.AtEnd(0, final_version).back(), final_version);

    // The worker takes over a virtual worker that still has to push.
    due.OnWeights(final_version);
    due.Forget(1);
    EXPECT_LT(due.AtClock(1, 3, final_version).back(), final_version);
    EXPECT_EQ(due.AtEnd(1, final_version).back(), final_version);
    EXPECT_THAT(due.AtEnd(1, final_version), IsEmpty());
  }
}

}  // namespace
}  // namespace tug
