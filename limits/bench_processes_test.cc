// SPDX-License-Identifier: Apache-2.0
#include "limits/bench_processes.h"

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

BenchWindowOptions Short() {
  return {.warm_up = absl::ZeroDuration(), .length = absl::Milliseconds(20)};
}

TEST(BenchProcesses, CountsWhatChildrenDoInTheWindow) {
  BenchProcesses processes;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(processes
                    .Start("child", "",
                           [](BenchChild& child) -> absl::Status {
                             for (;;) {
                               child.tally().Count(3, 1, 1);
                               child.tally().AddLatency(1, 2000);
                             }
                           })
                    .ok());
  }
  const absl::StatusOr<BenchWindow> window = processes.Measure(Short());
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_GT(window->operations, 0u);
  EXPECT_GT(window->there_bytes, 2 * window->back_bytes);
  EXPECT_GT(window->cpu_seconds, 0);
  EXPECT_GE(window->seconds, 0.02);
  EXPECT_TRUE(window->latencies_us[0].empty());
  ASSERT_FALSE(window->latencies_us[1].empty());
  EXPECT_EQ(window->latencies_us[1][0], 2);
}

TEST(BenchProcesses, CarriesLinesBothWays) {
  BenchProcesses processes;
  ASSERT_TRUE(processes
                  .Start("child", "",
                         [](BenchChild& child) -> absl::Status {
                           while (true) {
                             ASSIGN_OR_RETURN(const std::string line, child.Listen());
                             child.Say(absl::StrCat(line, line));
                           }
                         })
                  .ok());
  for (const char* line : {"a", "b"}) {
    processes.Tell(0, line);
    const absl::StatusOr<std::string> heard = processes.Hear(0);
    ASSERT_TRUE(heard.ok()) << heard.status();
    EXPECT_EQ(*heard, std::string(line) + line);
  }
}

TEST(BenchProcesses, TellsWhatAChildFailedOf) {
  BenchProcesses processes;
  ASSERT_TRUE(
      processes
          .Start("lane", "", [](BenchChild&) { return absl::InternalError("the port is in use"); })
          .ok());
  EXPECT_EQ(processes.Hear(0).status().message(), "lane: the port is in use");
}

TEST(BenchProcesses, TellsThatAChildWasKilled) {
  BenchProcesses processes;
  ASSERT_TRUE(processes
                  .Start("lane", "",
                         [](BenchChild& child) -> absl::Status {
                           child.tally().Count(1, 0, 1);
                           return child.Listen().status();
                         })
                  .ok());
  kill(processes.pid(0), SIGKILL);
  EXPECT_EQ(processes.Measure(Short()).status().message(), "lane was killed");
}

TEST(BenchProcesses, NamesAHostThatIsNotThere) {
  BenchProcesses processes;
  ASSERT_TRUE(
      processes
          .Start("lane", "no-such-host", [](BenchChild& child) { return child.Listen().status(); })
          .ok());
  EXPECT_THAT(std::string(processes.Hear(0).status().message()),
              HasSubstr("cannot enter host 'no-such-host'"));
}

}  // namespace
}  // namespace tug
