// SPDX-License-Identifier: Apache-2.0
#include "launch/supervisor_core.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Text(const StartProcess& start) {
  return absl::StrCat(start.again ? "again " : "start ", start.name, start.spare ? " spare" : "");
}
std::string Text(const StopCoordinator&) { return "stop"; }
std::string Text(const WarnOfExit& warning) { return absl::StrCat("warn ", warning.name); }
std::string Text(const EndJob& end) {
  constexpr const char* kWhy[] = {"done",       "coordinator failed", "lost",
                                  "no address", "cancelled",          "interrupted twice"};
  return absl::StrCat("end: ", kWhy[static_cast<int>(end.why)], " ", end.process);
}

// A job of a server, a spare server and a worker.
class SupervisorCoreTest : public ::testing::Test {
 protected:
  SupervisorCoreTest() {
    core_.AddNode("server-0", true, false, now_);
    core_.AddNode("server-1", true, true, now_);
    core_.AddNode("worker-0", false, false, now_);
    core_.Begin(now_);
    EXPECT_THAT(Actions(), ElementsAre("start coordinator"));
  }

  void Run() {
    core_.OnReady(now_);
    EXPECT_THAT(Actions(), ElementsAre("start server-0", "start server-1 spare", "start worker-0"));
  }
  // Exit after a minute, in which no process ended quickly.
  void Exit(const std::string& name, ProcessExit how, absl::Duration after = absl::Minutes(1)) {
    now_ += after;
    core_.OnExit(name, how, now_);
  }
  void Interrupt() {
    now_ += StopWishes::kApart;
    core_.OnInterrupt(now_);
  }
  void TickAtDeadline() {
    now_ = core_.NextDeadline();
    core_.OnTick(now_);
  }
  std::vector<std::string> Actions() {
    std::vector<std::string> texts;
    for (const SupervisorAction& action : core_.TakeActions()) {
      texts.push_back(std::visit([](const auto& one) { return Text(one); }, action));
    }
    return texts;
  }

  const SupervisorOptions options_ = {.join_time = absl::Seconds(20)};
  SupervisorCore core_{options_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(SupervisorCoreTest, ReplacesAKilledServerWithASpareAndAKilledWorkerAsBefore) {
  Run();
  Exit("server-0", ProcessExit::kKilled);
  EXPECT_THAT(Actions(), ElementsAre("again server-0 spare"));
  Exit("worker-0", ProcessExit::kConnectionLost);
  EXPECT_THAT(Actions(), ElementsAre("again worker-0"));
}

TEST_F(SupervisorCoreTest, DoesNotReplaceANodeThatLeft) {
  Run();
  Exit("worker-0", ProcessExit::kZero);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_EQ(core_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(SupervisorCoreTest, ReplacesAFailedNodeUnlessTheCoordinatorEndsTheJobFirst) {
  Run();
  Exit("worker-0", ProcessExit::kError);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_EQ(core_.NextDeadline(), now_ + options_.report_time);
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("again worker-0"));
  Exit("worker-0", ProcessExit::kUnknown);
  Exit("coordinator", ProcessExit::kError, absl::Seconds(1));
  EXPECT_THAT(Actions(), ElementsAre("end: coordinator failed "));
  EXPECT_EQ(core_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(SupervisorCoreTest, ReplacesAKilledNodeWhileAnotherFailureMayBeReported) {
  Run();
  Exit("worker-0", ProcessExit::kError);
  Exit("server-0", ProcessExit::kKilled, absl::Seconds(1));
  EXPECT_THAT(Actions(), ElementsAre("again server-0 spare"));
}

TEST_F(SupervisorCoreTest, EndsTheJobAfterThreeQuickDeathsInARow) {
  Run();
  const absl::Duration quick = options_.quick_death - absl::Milliseconds(1);
  for (const absl::Duration life : {quick, quick, options_.quick_death, quick, quick}) {
    Exit("worker-0", ProcessExit::kKilled, life);
    EXPECT_THAT(Actions(), ElementsAre("again worker-0"));
  }
  Exit("worker-0", ProcessExit::kKilled, quick);
  EXPECT_THAT(Actions(), IsEmpty());
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("end: lost worker-0"));
}

TEST_F(SupervisorCoreTest, AJobThatIsDoneIsNotEndedByANodeThatCrashesInALoop) {
  Run();
  for (int i = 0; i < kMaxQuickDeaths; ++i)
    Exit("worker-0", ProcessExit::kKilled, absl::ZeroDuration());
  Actions();
  Exit("coordinator", ProcessExit::kZero, absl::Seconds(1));
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("end: done "));
}

TEST_F(SupervisorCoreTest, EndsTheJobOfANodeThatCannotJoin) {
  Run();
  for (int i = 0; i < kMaxQuickDeaths; ++i) {
    EXPECT_NE(Actions(), std::vector<std::string>{"end: lost worker-0"});
    Exit("worker-0", ProcessExit::kError, options_.join_time + absl::Seconds(1));
    TickAtDeadline();
  }
  EXPECT_THAT(Actions(), ElementsAre("end: lost worker-0"));
}

TEST_F(SupervisorCoreTest, NodesThatEndDuringRecoveryWaitForTheCoordinator) {
  Run();
  Exit("coordinator", ProcessExit::kKilled);
  Exit("worker-0", ProcessExit::kKilled, absl::Seconds(1));
  Exit("server-0", ProcessExit::kError, absl::Seconds(1));
  EXPECT_EQ(core_.NextDeadline(), absl::InfiniteFuture());
  EXPECT_THAT(Actions(), ElementsAre("again coordinator"));
  core_.OnReady(now_);
  EXPECT_THAT(Actions(), ElementsAre("again worker-0"));
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("again server-0 spare"));
}

TEST_F(SupervisorCoreTest, RecoversTheJobUntilTheCoordinatorCrashesInALoop) {
  Run();
  Exit("coordinator", ProcessExit::kKilled);
  for (int i = 1; i < kMaxQuickDeaths; ++i) {
    EXPECT_THAT(Actions(), ElementsAre("again coordinator"));
    Exit("coordinator", ProcessExit::kKilled, absl::Seconds(1));
  }
  EXPECT_THAT(Actions(), ElementsAre("again coordinator"));
  Exit("coordinator", ProcessExit::kKilled, absl::Seconds(1));
  EXPECT_THAT(Actions(), ElementsAre("end: lost coordinator"));
}

TEST_F(SupervisorCoreTest, DoesNotRecoverACoordinatorThatWasNeverReadyOrWhoseExitIsUnknown) {
  Exit("coordinator", ProcessExit::kKilled);
  EXPECT_THAT(Actions(), ElementsAre("end: lost coordinator"));
  SupervisorCore running(options_);
  running.Begin(now_);
  running.OnReady(now_);
  running.OnExit("coordinator", ProcessExit::kUnknown, now_);
  EXPECT_EQ(Text(std::get<EndJob>(running.TakeActions().back())), "end: lost coordinator");
}

TEST_F(SupervisorCoreTest, WaitsForTheExitOfACoordinatorThatIsNotReady) {
  core_.OnNotReady(now_);
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("end: no address "));
  SupervisorCore failing(options_);
  failing.Begin(now_);
  failing.OnNotReady(now_);
  failing.OnExit("coordinator", ProcessExit::kError, now_);
  EXPECT_EQ(Text(std::get<EndJob>(failing.TakeActions().back())), "end: coordinator failed ");
}

TEST_F(SupervisorCoreTest, WarnsOfNodesThatFailAfterTheJobIsDone) {
  Run();
  Exit("coordinator", ProcessExit::kZero);
  Exit("worker-0", ProcessExit::kError, absl::Seconds(1));
  Exit("server-0", ProcessExit::kZero, absl::Seconds(1));
  EXPECT_THAT(Actions(), ElementsAre("warn worker-0"));
  Exit("server-1", ProcessExit::kZero, absl::Seconds(1));
  EXPECT_THAT(Actions(), ElementsAre("end: done "));
}

TEST_F(SupervisorCoreTest, EndsTheJobWithoutNodesThatDoNotExit) {
  Run();
  Exit("coordinator", ProcessExit::kZero);
  EXPECT_EQ(core_.NextDeadline(), now_ + options_.exit_time);
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("end: done "));
}

TEST_F(SupervisorCoreTest, LetsAnUnreachableCoordinatorEndItsJob) {
  Run();
  Exit("coordinator", ProcessExit::kConnectionLost);
  Interrupt();
  Exit("worker-0", ProcessExit::kError, absl::Seconds(1));
  EXPECT_THAT(Actions(), IsEmpty());
  TickAtDeadline();
  EXPECT_THAT(Actions(), ElementsAre("end: lost coordinator"));
}

TEST_F(SupervisorCoreTest, StopsOnTheFirstInterruptAndEndsOnTheSecond) {
  Run();
  Interrupt();
  core_.OnInterrupt(now_ + absl::Milliseconds(1));  // same interrupt
  EXPECT_THAT(Actions(), ElementsAre("stop"));
  Interrupt();
  EXPECT_THAT(Actions(), ElementsAre("end: interrupted twice "));
}

TEST_F(SupervisorCoreTest, EveryLaterCoordinatorIsStoppedToo) {
  Run();
  Exit("coordinator", ProcessExit::kKilled);
  Interrupt();
  EXPECT_THAT(Actions(), ElementsAre("again coordinator"));
  core_.OnReady(now_);
  EXPECT_THAT(Actions(), ElementsAre("stop"));
  Exit("coordinator", ProcessExit::kKilled);
  core_.OnReady(now_);
  EXPECT_THAT(Actions(), ElementsAre("again coordinator", "stop"));
}

TEST_F(SupervisorCoreTest, AnInterruptEndsAJobThatHasNotStartedOrIsDone) {
  Interrupt();
  EXPECT_THAT(Actions(), ElementsAre("end: cancelled "));
  EXPECT_TRUE(core_.interrupted());
  SupervisorCore done(options_);
  done.AddNode("worker-0", false, false, now_);
  done.Begin(now_);
  done.OnReady(now_);
  done.OnExit("coordinator", ProcessExit::kZero, now_);
  done.OnInterrupt(now_);
  EXPECT_EQ(Text(std::get<EndJob>(done.TakeActions().back())), "end: done ");
}

}  // namespace
}  // namespace tug
