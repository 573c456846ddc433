// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/cpu/cpu_affinity.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

Program Shell(const std::string& name, const std::string& script) {
  return Program{name, {"/bin/sh", "-c", script}, "", -1};
}

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

TEST(Launcher, TellsHowAChildEnded) {
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(Shell("worker-0", "exit 3")).ok());
  const LaunchEvent event = launcher.Wait(Soon());
  ASSERT_TRUE(event.ended.has_value());
  EXPECT_EQ(event.ended->name, "worker-0");
  EXPECT_FALSE(event.ended->exited_with_zero());
  EXPECT_EQ(event.ended->How(), "exited with code 3");
  EXPECT_EQ(launcher.running_count(), 0u);
}

TEST(Launcher, TellsWhichSignalKilledAChild) {
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(Shell("server-1", "exec sleep 1000")).ok());
  ASSERT_TRUE(launcher.Start(Shell("other", "exec sleep 1000")).ok());
  launcher.Signal("server-1", SIGKILL);
  const LaunchEvent event = launcher.Wait(Soon());
  ASSERT_TRUE(event.ended.has_value());
  EXPECT_EQ(event.ended->name, "server-1");
  EXPECT_TRUE(event.ended->killed_by_signal());
  EXPECT_EQ(event.ended->How(), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(launcher.running("other"));
}

TEST(Launcher, SeesEveryChildEnd) {
  Launcher launcher;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(launcher.Start(Shell("n", "true")).ok());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(launcher.Wait(Soon()).ended.has_value());
  EXPECT_EQ(launcher.running_count(), 0u);
}

// Another launcher may have started this process, as one of its ranks.
TEST(Launcher, KeepsRanksOfAnotherLauncherToItself) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "9", 1);
  setenv("LAUNCHER_TEST", "kept", 1);
  Launcher launcher;
  ASSERT_TRUE(
      launcher.Start(Shell("n", "test -z \"$RANK$WORLD_SIZE\" && test \"$LAUNCHER_TEST\" = kept"))
          .ok());
  const LaunchEvent event = launcher.Wait(Soon());
  for (const char* name : {"RANK", "WORLD_SIZE", "LAUNCHER_TEST"}) unsetenv(name);
  ASSERT_TRUE(event.ended.has_value());
  EXPECT_TRUE(event.ended->exited_with_zero());
}

TEST(Launcher, SeesTheEndOfAChildThatSomebodyElseReaped) {
  Launcher launcher;
  const pid_t pid = launcher.Start(Shell("n", "exit 0")).value();
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  const LaunchEvent event = launcher.Wait(Soon());
  ASSERT_TRUE(event.ended.has_value());
  EXPECT_FALSE(event.ended->exited_with_zero());
  EXPECT_EQ(event.ended->How(), "ended with an unknown status");
  EXPECT_EQ(launcher.running_count(), 0u);
}

TEST(Launcher, SaysThatAHostCannotBeEntered) {
  Launcher launcher;
  Program program = Shell("worker-0", "true");
  program.host = "no-such-host";
  program.log_path = testing::TempDir() + "/no-such-host.log";
  ASSERT_TRUE(launcher.Start(program).ok());
  const LaunchEvent event = launcher.Wait(Soon());
  ASSERT_TRUE(event.ended.has_value());
  EXPECT_EQ(event.ended->How(), "exited with code 127");
  EXPECT_NE(LastWords(program.log_path).find("cannot enter host 'no-such-host'"),
            std::string::npos);
}

TEST(Launcher, LeavesNoChildBehind) {
  pid_t pid = 0;
  {
    Launcher launcher;
    pid = launcher.Start(Shell("n", "trap '' TERM INT; exec sleep 1000")).value();
    EXPECT_TRUE(Exists(pid));
  }
  EXPECT_FALSE(Exists(pid));
}

TEST(Launcher, ChildrenDieWithALauncherThatIsKilled) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t launcher_pid = fork();
  if (launcher_pid == 0) {
    Launcher launcher;
    const pid_t child = launcher.Start(Shell("n", "exec sleep 1000")).value();
    if (write(fds[1], &child, sizeof(child)) != sizeof(child)) _exit(1);
    close(fds[1]);
    launcher.Wait(absl::InfiniteFuture());
    _exit(0);
  }
  close(fds[1]);
  pid_t child = 0;
  ASSERT_EQ(read(fds[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_EQ(kill(launcher_pid, SIGKILL), 0);
  ASSERT_EQ(waitpid(launcher_pid, nullptr, 0), launcher_pid);
  // The child holds the pipe's write end until it dies.
  char byte;
  EXPECT_EQ(read(fds[0], &byte, 1), 0);
  close(fds[0]);
}

TEST(Launcher, ReceivesInterruptsThatChildrenDoNot) {
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(Shell("n", "exec sleep 1000")).ok());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(launcher.Wait(Soon()).interrupted);
  EXPECT_FALSE(launcher.Wait(absl::Now()).interrupted);
  EXPECT_TRUE(launcher.running("n"));
}

TEST(Launcher, KeepsOneDescriptorForTheChild) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  Launcher launcher;
  Program program = Shell("n", "echo 127.0.0.1:5 >&" + std::to_string(fds[1]));
  program.keep_fd = fds[1];
  ASSERT_TRUE(launcher.Start(program).ok());
  close(fds[1]);
  char text[32] = {};
  EXPECT_EQ(read(fds[0], text, sizeof(text)), 12);
  EXPECT_STREQ(text, "127.0.0.1:5\n");
  close(fds[0]);
}

TEST(Launcher, GivesAChildItsCores) {
  const CpuBudget mine = ReadCpuBudget();
  if (mine.cores.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  const int last = mine.cores.back().number;
  Launcher launcher;
  Program program = Shell("n", "exec grep Cpus_allowed_list /proc/self/status");
  program.log_path = testing::TempDir() + "/cores.log";
  unlink(program.log_path.c_str());
  program.cores = {last};
  ASSERT_TRUE(launcher.Start(program).ok());
  ASSERT_TRUE(launcher.Wait(Soon()).ended.has_value());
  EXPECT_EQ(LastWords(program.log_path), "Cpus_allowed_list:\t" + std::to_string(last));
  EXPECT_EQ(ReadCpuBudget().cores.size(), mine.cores.size());
}

// An ignored signal would stay ignored in programs that do not expect it.
TEST(Launcher, GivesAChildTheDefaultActionOfSignals) {
  Program program = Shell("n", "exec grep SigIgn /proc/self/status");
  program.log_path = testing::TempDir() + "/signals.log";
  unlink(program.log_path.c_str());
  const std::array signals = {SIGPIPE, SIGXFSZ};
  std::map<int, sighandler_t> before;
  for (const int number : signals) before[number] = signal(number, SIG_IGN);
  Launcher launcher;
  const bool started = launcher.Start(program).ok();
  for (const int number : signals) signal(number, before[number]);
  ASSERT_TRUE(started);
  ASSERT_TRUE(launcher.Wait(Soon()).ended.has_value());
  const std::string line = LastWords(program.log_path);
  uint64_t ignored = 0;
  ASSERT_TRUE(absl::SimpleHexAtoi(line.substr(line.find('\t') + 1), &ignored)) << line;
  for (const int number : signals) EXPECT_EQ(ignored >> (number - 1) & 1, 0u) << number;
}

TEST(Launcher, TimeIsUp) {
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(Shell("n", "exec sleep 1000")).ok());
  const LaunchEvent event = launcher.Wait(absl::Now() + absl::Milliseconds(20));
  EXPECT_FALSE(event.ended.has_value());
  EXPECT_FALSE(event.interrupted);
}

TEST(Launcher, KeepsWhatAChildSaidLast) {
  const std::string log = ::testing::TempDir() + "/launcher_test.log";
  std::remove(log.c_str());
  Launcher launcher;
  Program program = Shell("n", "echo a; echo 'tug: error: no text' >&2; echo b");
  program.log_path = log;
  ASSERT_TRUE(launcher.Start(program).ok());
  ASSERT_TRUE(launcher.Wait(Soon()).ended.has_value());
  EXPECT_EQ(LastWords(log), "tug: error: no text");
  std::ofstream(log, std::ios::trunc) << "x\ny\n\n";
  EXPECT_EQ(LastWords(log), "y");
  EXPECT_EQ(LastWords(log + ".missing"), "");
}

TEST(Launcher, MakesTheFolderOfALogAgain) {
  const std::string folder = testing::TempDir() + "/deleted_logs";
  Program program = Shell("n", "echo here");
  program.log_path = folder + "/n.log";
  std::filesystem::remove_all(folder);
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(program).ok());
  EXPECT_EQ(launcher.Wait(Soon()).ended->How(), "exited with code 0");
  EXPECT_EQ(LastWords(program.log_path), "here");
}

TEST(Launcher, RunsAProgramWhoseLogCannotBeOpened) {
  Program program = Shell("worker-0", "echo nobody reads this");
  program.log_path = "/proc/no_such_folder/worker-0.log";
  Launcher launcher;
  testing::internal::CaptureStderr();
  ASSERT_TRUE(launcher.Start(program).ok());
  EXPECT_EQ(launcher.Wait(Soon()).ended->How(), "exited with code 0");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tug: warning: worker-0 runs without a log: cannot open "
            "/proc/no_such_folder/worker-0.log: No such file or directory; check the path\n");
}

TEST(Launcher, AProgramThatDoesNotExistEndsWith127) {
  Launcher launcher;
  ASSERT_TRUE(launcher.Start(Program{"n", {"/no/such/program"}, "/dev/null", -1}).ok());
  EXPECT_EQ(launcher.Wait(Soon()).ended->How(), "exited with code 127");
}

}  // namespace
}  // namespace tug
