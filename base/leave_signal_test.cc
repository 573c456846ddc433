// SPDX-License-Identifier: Apache-2.0
#include "base/leave_signal.h"

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(LeaveSignalDeathTest, NotesTheFirstOneAndDiesOfOneThatComesASecondLater) {
  LeaveSignal leave;
  leave.Arm(LeaveSignal::Rule::kLeave);
  EXPECT_FALSE(leave.asked());
  raise(SIGHUP);
  EXPECT_TRUE(leave.asked());
  raise(SIGTERM);  // within kApart: the same request
  EXPECT_EXIT(while (true) raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST(LeaveSignalDeathTest, AProcessThatIsNeededGoesOnForAWhile) {
  signal(SIGALRM, SIG_IGN);  // a parent process may ignore it
  LeaveSignal leave;
  leave.Arm(LeaveSignal::Rule::kAwaitEnd);
  raise(SIGTERM);
  EXPECT_FALSE(leave.asked());
  const unsigned left = alarm(0);
  EXPECT_GT(left, LeaveSignal::kPatienceSeconds / 2);
  EXPECT_LE(left, LeaveSignal::kPatienceSeconds);
  EXPECT_EXIT(raise(SIGALRM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(while (true) raise(SIGHUP), testing::KilledBySignal(SIGHUP), "");
}

TEST(LeaveSignalDeathTest, KeepsIgnoringASignalThatTheParentIgnored) {
  signal(SIGHUP, SIG_IGN);
  {
    LeaveSignal leave;
    leave.Arm(LeaveSignal::Rule::kLeave);
    raise(SIGHUP);
    EXPECT_FALSE(leave.asked());
  }
  raise(SIGHUP);
  signal(SIGHUP, SIG_DFL);
}

TEST(LeaveSignalDeathTest, IsNothingBeforeItIsArmed) {
  LeaveSignal leave;
  EXPECT_FALSE(leave.asked());
  EXPECT_EXIT(raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace tug
