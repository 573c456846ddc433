// SPDX-License-Identifier: Apache-2.0
// `tug launch`: jobs started by ssh. The hosts are loopback addresses with one real sshd and, as
// root, network namespaces with one sshd each. Skipped without sshd.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/hosts/testbed.h"
#include "tests/support/free_port.h"
#include "tests/support/run_result.h"
#include "tests/support/sshd_test.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Time for daemons to exit after their launcher is gone.
constexpr absl::Duration kGoneTime = absl::Seconds(10);
const Texts kDaemons = {"coordinator", "server", "worker", "attend"};

class LaunchTest : public SshdTest {
 protected:
  // Starts one sshd for four hosts, and writes their hosts file.
  void StartHosts() {
    const Texts addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"};
    ASSERT_NO_FATAL_FAILURE(StartSshd(addresses));
    WriteHosts(addresses);
  }

  Texts LaunchArguments(const Texts& settings, const Texts& more) const {
    return Texts{"launch",          job(),      "--hosts",
                 Path("hosts.txt"), "--ssh",    absl::StrCat("ssh -F ", Path("ssh_config")),
                 "--run-dir",       Path("run")} +
           Set(settings) + more;
  }
  // Makes launch use the built program instead of copying it.
  static Texts Installed() { return {"--program", fs::absolute("cli/tug").string()}; }
  Process& StartLaunch(const Texts& settings = {}, const Texts& more = Installed()) {
    return Start(LaunchArguments(settings, more));
  }

  void LoseConnection(const std::string& daemon) const {
    const std::string attachment = absl::StrCat("/", daemon, ".json");
    pid_t ssh = 0;
    for (const FoundProcess& process : FindProcesses(test_id())) {
      if (process.argv.size() < 3 || !absl::EndsWith(process.argv[2], attachment)) continue;
      const std::string children =
          ReadText(absl::StrCat("/proc/", process.pid, "/task/", process.pid, "/children"));
      ASSERT_TRUE(absl::SimpleAtoi(children, &ssh)) << children;
    }
    ASSERT_GT(ssh, 0) << daemon << " has no connection";
    kill(ssh, SIGKILL);
  }

  bool DaemonsAreLeft() const {
    for (const std::string& kind : kDaemons) {
      if (!Pids(kind).empty()) return true;
    }
    return false;
  }
  void ExpectDaemonsGone(absl::Duration within) {
    const absl::Time begin = absl::Now();
    sshds_[0]->WaitUntil([this] { return !DaemonsAreLeft(); }, begin + within);
    EXPECT_FALSE(DaemonsAreLeft());
    std::cout << "no daemon is left after " << absl::ToInt64Milliseconds(absl::Now() - begin)
              << " ms" << std::endl;
  }
  // Expects all linked libraries in the bundle, except those of the host.
  void ExpectHasItsLibraries(const fs::path& bundle) {
    Process& ldd = StartProgram("/usr/bin/ldd", {bundle / "bin/tug"});
    ASSERT_TRUE(ldd.WaitForEnd(After(kPatience)));
    ASSERT_EQ(ldd.exit_code(), 0) << ldd.err();
    int there = 0;
    for (const absl::string_view line : absl::StrSplit(ldd.out(), '\n')) {
      const std::vector<std::string> words =
          absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
      if (words.size() < 3 || words[1] != "=>") continue;
      static constexpr const char* kOwn[] = {"libc.",  "libm.",       "libmvec.",  "libdl.",
                                             "librt.", "libpthread.", "libresolv."};
      if (std::any_of(std::begin(kOwn), std::end(kOwn),
                      [&](const char* own) { return absl::StartsWith(words[0], own); })) {
        continue;
      }
      EXPECT_TRUE(fs::exists(bundle / "lib/tug" / words[0])) << line;
      ++there;
    }
    EXPECT_GT(there, 0) << ldd.out();
  }
  void ExpectBitsOfALocalJob() {
    Train("local");
    ExpectSameState(Path("local"), Path("run"));
  }
};

TEST_F(LaunchTest, TrainsToItsEndWithTheBitsOfALocalJob) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch();
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  ASSERT_EQ(launch.exit_code(), 0) << launch.out() << launch.err();
  EXPECT_THAT(launch.out(), AllOf(HasSubstr("coordinator     127.0.0.1 | "), HasSubstr("done")));
  EXPECT_TRUE(fs::exists(Path("run/logs/worker-1.log")));
  ExpectDaemonsGone(kGoneTime);
  ExpectBitsOfALocalJob();
}

TEST_F(LaunchTest, TakesAJobFileThatIsAPipe) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  const FileDescriptor pipe = PipeOf(ReadText(job()));
  Texts arguments = LaunchArguments({"train.steps=10"}, Installed());
  ASSERT_EQ(arguments[1], job());
  arguments[1] = absl::StrCat("/dev/fd/", pipe.get());
  Process& launch = Start(arguments);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.out() << launch.err();
  EXPECT_EQ(NewestCheckpoint("run"), 10u);
}

TEST_F(LaunchTest, LeavesNobodyWhenItIsKilled) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  EXPECT_EQ(Pids("server").size(), 2u);
  EXPECT_EQ(Pids("worker").size(), 2u);
  launch.Signal(SIGKILL);
  ExpectDaemonsGone(kGoneTime);
  EXPECT_EQ(ReadLosses(Path("run")).value().training.rbegin()->first, NewestCheckpoint("run"))
      << "the job was not ended in order";
}

TEST_F(LaunchTest, LeavesNobodyWhenItsConnectionsAreSilent) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch =
      StartLaunch(Endless() + Texts{"fault.failure_timeout_ms=2500", "fault.heartbeat_ms=50"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  for (const pid_t pid : Pids("attach")) kill(pid, SIGSTOP);
  launch.Signal(SIGSTOP);
  ExpectDaemonsGone(kGoneTime + absl::Seconds(3));
  launch.Signal(SIGKILL);
}

TEST_F(LaunchTest, LeavesADetachedJobAlone) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless(), Installed() + Texts{"--detach"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  launch.Signal(SIGKILL);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience)));
  const uint64_t steps = ReadLosses(Path("run")).value().training.rbegin()->first;
  Process& watcher = *sshds_[0];
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(watcher, "run", steps + 50));
  const Process& stop = Run({"stop", Path("run")});
  EXPECT_EQ(stop.exit_code(), 0) << stop.err();
  ExpectDaemonsGone(kPatience);
  EXPECT_THAT(ReadText(Path("run/logs/coordinator.log")), HasSubstr("stopped"));
}

TEST_F(LaunchTest, EndsInOrderWhenInterrupted) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  launch.Signal(SIGINT);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.err();
  EXPECT_THAT(launch.out(), AllOf(HasSubstr("stopped:"),
                                  HasSubstr(absl::StrCat("continue with: tug launch ", job(), " ")),
                                  HasSubstr(" --resume " + Path("run"))));
  ExpectDaemonsGone(kGoneTime);
  EXPECT_EQ(ReadLosses(Path("run")).value().training.rbegin()->first, NewestCheckpoint("run"));
  EXPECT_THAT(Run({"status", Path("run")}).out(),
              AllOf(HasSubstr("stopped, "), HasSubstr("continue with: tug launch " + job() + " ")));
  EXPECT_THAT(
      ReadText(Path("run/logs/launcher.log")),
      AllOf(HasSubstr("launcher: started coordinator "), HasSubstr("worker-0 exited with")));
}

// The reaction to the lost connection must not count as a second signal.
TEST_F(LaunchTest, EndsInOrderWhenInterruptedAndKilled) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  const std::vector<pid_t> coordinators = Pids("coordinator");
  ASSERT_EQ(coordinators.size(), 1u);
  kill(coordinators[0], SIGSTOP);
  launch.Signal(SIGINT);
  const auto passed = [&] { return IsPending(coordinators[0], SIGINT); };
  ASSERT_TRUE(launch.WaitUntil(passed, After(kPatience))) << launch.out() << launch.err();
  launch.Signal(SIGKILL);
  const auto noticed = [&] {
    return absl::StrContains(ReadText(Path("run/logs/coordinator.log")), "is lost: ending");
  };
  ASSERT_TRUE(sshds_[0]->WaitUntil(noticed, After(kPatience)));
  kill(coordinators[0], SIGCONT);
  ExpectDaemonsGone(kGoneTime);
  EXPECT_EQ(ReadLosses(Path("run")).value().training.rbegin()->first, NewestCheckpoint("run"));
}

TEST_F(LaunchTest, EndsAtOnceWhenInterruptedTwice) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  for (const pid_t pid : Pids("coordinator")) kill(pid, SIGSTOP);  // it handles no signal
  launch.Signal(SIGINT);
  ASSERT_TRUE(EndsWhenAskedAgain(launch, SIGTERM)) << launch.out() << launch.err();
  ExpectErrorLine(launch, {"interrupted twice"});
  ExpectDaemonsGone(kGoneTime);
}

TEST_F(LaunchTest, ReplacesADaemonThatIsKilled) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  ASSERT_NO_FATAL_FAILURE(ExpectAWorkerIsReplaced(launch, "run"));
  ASSERT_NO_FATAL_FAILURE(EndInOrder(launch));
}

// As by a cleanup of TMPDIR.
TEST_F(LaunchTest, ReplacesADaemonAfterItsOwnFilesWereDeleted) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  fs::path folder;
  for (const FoundProcess& process : FindProcesses(test_id())) {
    if (process.argv.size() > 2 && process.argv[1] == "attach") {
      folder = fs::path(process.argv[2]).parent_path();
    }
  }
  ASSERT_THAT(folder.string(), HasSubstr("tug-launch-"));
  fs::remove_all(folder);
  ASSERT_NO_FATAL_FAILURE(ExpectAWorkerIsReplaced(launch, "run"));
  ASSERT_NO_FATAL_FAILURE(EndInOrder(launch));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(LaunchTest, TakesUpTheJobOfACoordinatorThatIsKilled) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  const std::vector<pid_t> coordinators = Pids("coordinator");
  ASSERT_EQ(coordinators.size(), 1u);
  kill(coordinators[0], SIGKILL);
  const auto taken_up = [&] {
    return absl::StrContains(launch.err(), "starting another one to recover the job") &&
           Pids("coordinator").size() == 1;
  };
  ASSERT_TRUE(launch.WaitUntil(taken_up, After(kPatience))) << launch.out() << launch.err();
  const uint64_t steps = ReadLosses(Path("run")).value().training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", steps + 5));
  launch.Signal(SIGINT);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.err();
}

TEST_F(LaunchTest, EndsTheJobOfACoordinatorWhoseConnectionIsLost) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  ASSERT_NO_FATAL_FAILURE(LoseConnection("coordinator"));
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  ExpectErrorLine(
      launch, {"coordinator is gone: connection to 127.0.0.1 lost",
               absl::StrCat("resume with: tug launch ", job(), " --set train.steps="),
               absl::StrCat(" --ssh 'ssh -F ", Path("ssh_config"), "' --program "), "--resume"});
  ExpectDaemonsGone(kGoneTime);
  EXPECT_EQ(ReadLosses(Path("run")).value().training.rbegin()->first, NewestCheckpoint("run"));
}

TEST_F(LaunchTest, BeatsFasterThanASilenceBelowASecond) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch =
      StartLaunch(Endless() + Texts{"fault.failure_timeout_ms=900", "fault.heartbeat_ms=50"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 200));
  launch.Signal(SIGINT);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.err();
  EXPECT_THAT(launch.out(), Not(HasSubstr("is lost")));
}

TEST_F(LaunchTest, BeatsThoughItsWallClockIsSetBack) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  if (!GiveOwnWallClock()) GTEST_SKIP() << "a sanitizer wants to be loaded first";
  Process& launch =
      StartLaunch(Endless() + Texts{"fault.failure_timeout_ms=2000", "fault.heartbeat_ms=50"});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  SetWallClockBack();
  // Longer than the silence after which daemons assume that the launcher is gone.
  EXPECT_FALSE(launch.WaitForEnd(After(absl::Seconds(5))));
  launch.Signal(SIGINT);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.err();
  EXPECT_THAT(launch.out(), Not(HasSubstr("is lost")));
}

TEST_F(LaunchTest, ReplacesADaemonWhoseConnectionIsLost) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  ASSERT_NO_FATAL_FAILURE(LoseConnection("worker-0"));
  const auto replaced = [&] { return absl::StrContains(launch.err(), "starting a replacement"); };
  ASSERT_TRUE(launch.WaitUntil(replaced, After(kPatience))) << launch.out() << launch.err();
  EXPECT_THAT(launch.err(), HasSubstr("worker-0 is gone: connection to 127.0.0.3 lost"));
  const uint64_t steps = ReadLosses(Path("run")).value().training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", steps + 5));
  launch.Signal(SIGINT);
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  EXPECT_EQ(launch.exit_code(), 0) << launch.err();
  ExpectDaemonsGone(kGoneTime);
}

TEST_F(LaunchTest, CopiesItselfOnceToAHostWithoutIt) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  Process& launch = StartLaunch({}, {});
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  ASSERT_EQ(launch.exit_code(), 0) << launch.out() << launch.err();
  EXPECT_THAT(launch.err(), HasSubstr("copying tug"));
  std::vector<fs::path> cached;
  for (const auto& entry : fs::directory_iterator(Path("cache/tugboat")))
    cached.push_back(entry.path());
  ASSERT_EQ(cached.size(), 1u) << "four hosts share it here";
  ExpectHasItsLibraries(cached[0] / "tug");
  fs::remove_all(Path("run"));
  Process& again = StartLaunch({}, {});
  ASSERT_TRUE(again.WaitForEnd(After(kPatience))) << again.out() << again.err();
  EXPECT_EQ(again.exit_code(), 0) << again.out() << again.err();
  EXPECT_THAT(again.err(), Not(HasSubstr("copying")));
  ExpectBitsOfALocalJob();
}

TEST_F(LaunchTest, RemovesOldCopiesOfItself) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  const fs::path cache = Path("cache/tugboat");
  for (int weeks = 0; weeks < 6; ++weeks) {
    const fs::path copy = cache / absl::StrCat("old-", weeks);
    fs::create_directories(copy / "tug");
    fs::last_write_time(copy,
                        fs::file_time_type::clock::now() - std::chrono::hours(168 * weeks + 1));
  }
  Process& launch = StartLaunch({}, {});
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  ASSERT_EQ(launch.exit_code(), 0) << launch.out() << launch.err();
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(cache)) left.insert(entry.path().filename());
  EXPECT_EQ(left.size(), 3u);
  EXPECT_EQ(left.count("old-0") + left.count("old-1"), 2u);
}

TEST_F(LaunchTest, SaysInOneLineWhatIsWrong) {
  ASSERT_NO_FATAL_FAILURE(StartHosts());
  const std::string good = ReadText(Path("hosts.txt"));
  struct {
    std::string hosts;
    Texts more;
    Texts parts;
  } const cases[] = {
      {absl::StrCat("127.0.0.1:", FreePort()), {}, {"cannot reach 127.0.0.1", "line 1", "refused"}},
      {"no-such-host.invalid", {}, {"cannot reach no-such-host.invalid", "resolve"}},
      {"a slots=x", {}, {"hosts.txt:1", "from 1 to"}},
      {absl::StrCat("127.0.0.1:", port_, " interface=no-such-0"),
       {},
       {"interface no-such-0 does not exist"}},
      {good, {"--program", "/no/such/tug"}, {"no executable /no/such/tug on 127.0.0.1"}},
      {good, {"--bundle", job()}, {"cannot prepare", "does not look like a tar archive"}},
      {absl::StrCat("[::1]:", port_), {}, {"hosts.txt:1", "daemons use IPv4"}},
      {good, {"--program", "/bin/true"}, {"/bin/true", "install this build"}},
      {good, {"--ssh", "no-such-ssh"}, {"cannot prepare", "cannot execute"}},
  };
  for (const auto& [hosts, more, parts] : cases) {
    Write("hosts.txt", hosts + "\n");
    Texts arguments = LaunchArguments({}, more);
    if (!more.empty() && more[0] == "--ssh") {
      arguments = Texts{"launch", job(), "--hosts", Path("hosts.txt")} + more;
    } else if (more.empty()) {
      arguments = arguments + Installed();
    }
    Process& launch = Start(arguments);
    ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.command();
    ExpectErrorLine(launch, parts);
    EXPECT_FALSE(DaemonsAreLeft());
  }
}

// Four hosts with their own addresses; the launcher runs on the first.
class LaunchAcrossHostsTest : public LaunchTest {
 protected:
  void MakeHosts() {
    absl::StatusOr<std::unique_ptr<Testbed>> testbed = Testbed::Up(4, "1gbit");
    if (!testbed.ok()) GTEST_SKIP() << testbed.status();
    testbed_ = *std::move(testbed);
    Texts addresses;
    for (const NetworkHost& host : testbed_->hosts()) {
      ASSERT_NO_FATAL_FAILURE(StartSshd({host.address}, {kIp, "netns", "exec", host.name}));
      addresses.push_back(host.address);
    }
    WriteHosts(addresses);
  }
  Process& LaunchThere(const Texts& settings) {
    return StartProgram(
        kIp, Texts{"netns", "exec", testbed_->hosts()[0].name, fs::absolute("cli/tug").string()} +
                 LaunchArguments(settings + Texts{"cluster.workers=4", "cluster.virtual_workers=4"},
                                 Installed()));
  }
  std::unique_ptr<Testbed> testbed_;
};

TEST_F(LaunchAcrossHostsTest, TrainsToItsEnd) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts());
  if (IsSkipped()) return;
  Process& launch = LaunchThere({});
  ASSERT_TRUE(launch.WaitForEnd(After(kPatience))) << launch.out() << launch.err();
  ASSERT_EQ(launch.exit_code(), 0) << launch.out() << launch.err();
  EXPECT_THAT(launch.out(), HasSubstr("coordinator     10.77.0.1 | "));
  EXPECT_THAT(launch.out(), HasSubstr("coordinator at 10.77.0.1:"));
  EXPECT_FALSE(fs::exists(Path("run/keys"))) << "keys that were made for the job stay";
  EXPECT_EQ(NewestCheckpoint("run"), 50u);
  ExpectDaemonsGone(kGoneTime);
}

TEST_F(LaunchAcrossHostsTest, LeavesNobodyWhenItIsKilled) {
  ASSERT_NO_FATAL_FAILURE(MakeHosts());
  if (IsSkipped()) return;
  Process& launch = LaunchThere(Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(launch, "run", 5));
  EXPECT_EQ(Pids("server").size(), 2u);
  EXPECT_EQ(Pids("worker").size(), 4u);
  launch.Signal(SIGKILL);
  ExpectDaemonsGone(kGoneTime);
}

}  // namespace
}  // namespace tug
