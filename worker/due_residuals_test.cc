#include "worker/due_residuals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DueResiduals, AreOfTheIntervalAndTheLastVersion) {
  DueResiduals due(/*interval=*/5, /*start_version=*/5);
  EXPECT_THAT(due.Pass(3, 5, 0), IsEmpty()) << "the timeline begins there";
  EXPECT_THAT(due.Pass(3, 9, 0), IsEmpty());
  EXPECT_THAT(due.Pass(3, 10, 0), ElementsAre(10));
  EXPECT_THAT(due.Pass(3, 10, 0), IsEmpty());
  EXPECT_THAT(due.Pass(3, 12, 12), ElementsAre(12));
  EXPECT_THAT(due.Pass(3, 12, 12), IsEmpty());
  EXPECT_THAT(due.Pass(4, 12, 12), ElementsAre(10, 12)) << "each for itself";
}

TEST(DueResiduals, TheLastVersionMayBeKnownAfterItWasPassed) {
  DueResiduals due(5, 0);
  EXPECT_THAT(due.Pass(0, 7, 0), ElementsAre(5));
  EXPECT_THAT(due.Pass(0, 7, 7), ElementsAre(7));
  EXPECT_THAT(due.Pass(0, 7, 7), IsEmpty());
  EXPECT_THAT(due.Pass(1, 10, 0), ElementsAre(5, 10));
  EXPECT_THAT(due.Pass(1, 10, 10), IsEmpty()) << "written already";
}

TEST(DueResiduals, WithoutAnIntervalThereIsTheLastOneOnly) {
  DueResiduals due(0, 0);
  EXPECT_THAT(due.Pass(0, 1000, 0), IsEmpty());
  EXPECT_THAT(due.Pass(0, 1001, 1001), ElementsAre(1001));
}

TEST(DueResiduals, OfAVirtualWorkerThatCameTheNewestAreDueAgain) {
  DueResiduals due(1, 0);
  EXPECT_THAT(due.Pass(2, 3, 0), ElementsAre(1, 2, 3));
  due.Forget(2);
  EXPECT_THAT(due.Pass(2, 100, 0), ElementsAre(93, 94, 95, 96, 97, 98, 99, 100));
}

}  // namespace
}  // namespace tug
