// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/testbed.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/launcher.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

bool HostIsThere(const std::string& name) { return fs::exists("/run/netns/" + name); }
bool BridgeIsThere() { return fs::exists("/sys/class/net/tug-bridge"); }

class TestbedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto trial = Testbed::Up(1, "100mbit");
    if (!trial.ok()) GTEST_SKIP() << trial.status().message();
  }
};

TEST_F(TestbedTest, HasHostsThatProgramsRunInAndReachEachOther) {
  auto testbed = Testbed::Up(2, "100mbit");
  ASSERT_TRUE(testbed.ok()) << testbed.status();
  ASSERT_EQ((*testbed)->hosts().size(), 2u);
  Launcher launcher;
  Program program;
  program.name = "ip";
  program.log_path = testing::TempDir() + "/ip.log";
  program.argv = {"/bin/sh", "-c", "ip -4 -o addr show dev eth0"};
  program.host = (*testbed)->hosts()[1].name;
  ASSERT_TRUE(launcher.Start(program).ok());
  ASSERT_TRUE(launcher.Wait(absl::Now() + absl::Seconds(20)).ended.has_value());
  EXPECT_THAT(LastWords(program.log_path), HasSubstr((*testbed)->hosts()[1].address + "/24"));
}

TEST_F(TestbedTest, CountsWhatGoesOverEachLinkInBothDirections) {
  auto testbed = Testbed::Up(3, "100mbit");
  ASSERT_TRUE(testbed.ok()) << testbed.status();
  const auto before = (*testbed)->ReadLinkBytes();
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->size(), 3u);
  Launcher launcher;
  Program program;
  program.name = "sender";
  program.log_path = testing::TempDir() + "/sender.log";
  const std::string to = (*testbed)->hosts()[0].address;
  program.argv = {"/bin/bash", "-c",
                  "for i in {1..20}; do head -c 1400 /dev/zero > /dev/udp/" + to + "/9; done"};
  program.host = (*testbed)->hosts()[1].name;
  ASSERT_TRUE(launcher.Start(program).ok());
  ASSERT_TRUE(launcher.Wait(absl::Now() + absl::Seconds(20)).ended.has_value());
  constexpr uint64_t kBytes = 20 * 1400;
  auto after = (*testbed)->ReadLinkBytes();
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (after.ok() && (*after)[0].received < (*before)[0].received + kBytes &&
         absl::Now() < deadline) {
    std::this_thread::yield();
    after = (*testbed)->ReadLinkBytes();
  }
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_GE((*after)[1].sent, (*before)[1].sent + kBytes);
  EXPECT_GE((*after)[0].received, (*before)[0].received + kBytes);
  EXPECT_LT((*after)[2].sent, (*before)[2].sent + kBytes) << "it sends nothing of that";
}

TEST_F(TestbedTest, IsGoneWithItsOwner) {
  { ASSERT_TRUE(Testbed::Up(2, "100mbit").ok()); }
  EXPECT_FALSE(HostIsThere("tug-0"));
  EXPECT_FALSE(BridgeIsThere());
}

TEST_F(TestbedTest, IsGoneWhenItsProcessIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const auto testbed = Testbed::Up(2, "100mbit");
    if (write(ready[1], testbed.ok() ? "y" : "n", 1) == 1) pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_TRUE(HostIsThere("tug-1"));
  kill(pid, SIGKILL);
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while ((HostIsThere("tug-0") || BridgeIsThere()) && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(HostIsThere("tug-0"));
  EXPECT_FALSE(BridgeIsThere());
}

TEST_F(TestbedTest, IsGoneThoughItsScriptIsToldToEndAgainAndAgain) {
  const auto testbed = Testbed::Up(4, "100mbit");
  ASSERT_TRUE(testbed.ok()) << testbed.status();
  std::string held, by;
  pid_t script = 0;  // our child until it is reaped
  std::ifstream("/sys/class/net/tug-bridge/ifalias") >> held >> by >> script;
  ASSERT_GT(script, 1);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (BridgeIsThere() && absl::Now() < deadline) {
    kill(script, SIGTERM);
    std::this_thread::yield();
  }
  EXPECT_FALSE(BridgeIsThere());
  for (const char* host : {"tug-0", "tug-1", "tug-2", "tug-3"}) EXPECT_FALSE(HostIsThere(host));
}

TEST_F(TestbedTest, LeavesTheTestbedOfAnotherAlone) {
  const auto first = Testbed::Up(1, "100mbit");
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(std::string(Testbed::Up(2, "100mbit").status().message()),
              HasSubstr("a testbed exists already"));
  EXPECT_TRUE(HostIsThere("tug-0"));
  EXPECT_TRUE(BridgeIsThere());
}

// Runs in a separate network namespace.
TEST_F(TestbedTest, KeepsTheMachinesCongestionControlWhereItCannotSetReno) {
  Launcher launcher;
  Program program;
  program.name = "testbed";
  program.log_path = testing::TempDir() + "/testbed.log";
  const std::string script = fs::absolute("deploy/testbed").string();
  program.argv = {"/usr/bin/unshare",
                  "--net",
                  "--mount",
                  "/bin/bash",
                  "-ec",
                  "mount -t tmpfs none /run/netns; mount --bind /proc/sys /proc/sys; "
                  "mount -o remount,bind,ro /proc/sys; " +
                      script + " up >&2; " + script + " down"};
  ASSERT_TRUE(launcher.Start(program).ok());
  ASSERT_TRUE(launcher.Wait(absl::Now() + absl::Seconds(20)).ended.has_value());
  std::string line, own;
  std::ifstream log(program.log_path);
  std::getline(log, line);
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> own;
  EXPECT_THAT(line, EndsWith("hosts keep the machine's congestion control, " + own));
  std::getline(log, line);
  EXPECT_THAT(line, HasSubstr("hosts tug-0 tug-1, addresses "));
}

TEST_F(TestbedTest, TakesNumbersThatBeginWithZeroAsDecimal) {
  const auto testbed = Testbed::Up(1, "0080mbit");
  ASSERT_TRUE(testbed.ok()) << testbed.status();
}

TEST_F(TestbedTest, SaysWhatIsWrongWithARate) {
  EXPECT_THAT(std::string(Testbed::Up(1, "fast").status().message()), HasSubstr("--link fast"));
}

TEST(TestbedWithoutRoot, SaysThatItNeedsIt) {
  if (geteuid() == 0) GTEST_SKIP() << "we are root";
  EXPECT_THAT(std::string(Testbed::Up(1, "100mbit").status().message()), HasSubstr("needs root"));
}

}  // namespace
}  // namespace tug
