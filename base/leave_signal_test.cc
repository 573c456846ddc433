#include "base/leave_signal.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(LeaveSignalDeathTest, NotesTheFirstOneAndDiesOfOneThatComesASecondLater) {
  LeaveSignal leave;
  leave.Arm();
  EXPECT_FALSE(leave.asked());
  raise(SIGTERM);
  EXPECT_TRUE(leave.asked());
  raise(SIGTERM);  // the same wish
  EXPECT_EXIT(while (true) raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST(LeaveSignalDeathTest, IsNothingBeforeItIsArmed) {
  LeaveSignal leave;
  EXPECT_FALSE(leave.asked());
  EXPECT_EXIT(raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace tug
