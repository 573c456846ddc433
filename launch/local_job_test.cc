// SPDX-License-Identifier: Apache-2.0
#include "launch/local_job.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/files/file.h"
#include "base/stop_wishes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A job of shell scripts instead of tug's daemons.
class LocalJobTest : public ::testing::Test {
 protected:
  LocalJobTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    job_.executable = (root_ / "fake").string();
    job_.job_file = "job.textproto";
    job_.servers = 1;
    job_.workers = 2;
  }

  // The coordinator reports address and run folder through `$fd`; every process leaves its pid in
  // pids/.
  void Write(const std::string& coordinator, const std::string& server, const std::string& worker) {
    fs::create_directories(root_ / "pids");
    std::ofstream(job_.executable)
        << "#!/bin/sh\nroot=" << root_.string() << "\ntouch $root/pids/$$\n"
        << "case \"$1\" in\n"
        << "coordinator) fd=$3\n"
        << coordinator << "\n;;\n"
        << "server) " << server << "\n;;\n"
        << "worker) " << worker << "\n;;\nesac\n";
    fs::permissions(job_.executable, fs::perms::owner_all);
  }
  // Runs remote programs here, with the same executable, as their local representatives.
  void RunElsewhere() {
    job_.hosts = {{"a", "{address}"}};
    job_.log_folder = root_.string();
    job_.command = {"tug", "launch", "my job", "--set", "seed=2"};
    job_.elsewhere = [this](const Program& program, const std::string&) {
      Program stand_in = program;
      stand_in.host.clear();
      stand_in.writes_log = true;
      stand_in.log_path = (root_ / (program.name + ".log")).string();
      return stand_in;
    };
  }
  void ExpectNobodyLeft() const {
    for (const auto& entry : fs::directory_iterator(root_ / "pids")) {
      EXPECT_NE(kill(std::stoi(entry.path().filename()), 0), 0) << entry.path();
    }
  }

  // Unique to this test: processes started by a killed script may outlive it briefly.
  const fs::path root_ =
      fs::path(::testing::TempDir()) /
      absl::StrCat("local_job_", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  LocalJob job_;
  const std::string tell_ = "eval \"printf '127.0.0.1:5\\t%s\\n' $root >&$fd\"\n";
};

TEST_F(LocalJobTest, IsDoneWhenTheCoordinatorIs) {
  Write(tell_ + "while [ ! -e $root/worked ]; do sleep 0.02; done", "exec sleep 1000",
        "echo $* >> $root/worked");
  job_.supervision.exit_time = absl::Milliseconds(200);
  EXPECT_TRUE(RunLocalJob(job_).ok());
  ExpectNobodyLeft();
  EXPECT_THAT(ReadWholeFile((root_ / "worked").string(), 1000).value(),
              HasSubstr("worker --name worker-0 --coordinator 127.0.0.1:5"));
}

TEST_F(LocalJobTest, PassesTheJobToTheCoordinator) {
  job_.overrides = {"train.steps=5", "seed=2"};
  job_.resume = "runs/a b";
  Write("shift 6; printf '%s|' \"$@\" > $root/arguments; exit 0", "true", "true");
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_EQ(ReadWholeFile((root_ / "arguments").string(), 1000).value(),
            "--set|train.steps=5|--set|seed=2|--resume|runs/a b|");
}

TEST_F(LocalJobTest, GivesTheCoordinatorTheJobThatWasRead) {
  job_.job_file = "/no/longer/there";
  job_.job_text = "name: 'read once'\n";
  Write("cat \"$4\" > $root/job; exit 0", "true", "true");
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_EQ(ReadWholeFile((root_ / "job").string(), 1000).value(), *job_.job_text);
}

TEST_F(LocalJobTest, TellsWhatTheCoordinatorSaidWhereItHasALog) {
  Write("echo 'tug: error: no such text'; exit 1", "true", "true");
  job_.coordinator_log = (root_ / "coordinator.log").string();
  EXPECT_EQ(RunLocalJob(job_).message(), "no such text");
  ExpectNobodyLeft();
}

// Hosts without a namespace: tests the arguments, without root.
TEST_F(LocalJobTest, GivesEachNodeTheAddressesOfItsHost) {
  job_.workers = 3;
  job_.hosts = {{"", "10.77.0.1"}, {"", "10.77.0.2"}};
  Write("echo $* >> $root/listens\n" + tell_ +
            "while [ $(cat $root/done 2>/dev/null | wc -l) -lt 4 ]; do sleep 0.02; done",
        "echo $* >> $root/listens; echo >> $root/done",
        "echo $* >> $root/works; echo >> $root/done");
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_THAT(
      ReadWholeFile((root_ / "listens").string(), 1000).value(),
      AllOf(HasSubstr("job.textproto --listen 10.77.0.1:0"),
            HasSubstr("server --name server-0 --coordinator 127.0.0.1:5 --listen 10.77.0.1\n")));
  EXPECT_THAT(
      ReadWholeFile((root_ / "works").string(), 1000).value(),
      AllOf(HasSubstr("worker --name worker-0 --coordinator 127.0.0.1:5 --gpu-share 0/3\n"),
            HasSubstr("worker --name worker-1 --coordinator 127.0.0.1:5 --gpu-share 1/3\n"),
            HasSubstr("worker --name worker-2 --coordinator 127.0.0.1:5 --gpu-share 2/3\n")));
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, PutsServersBesideWorkersAndTheOthersOnHostsOfTheirOwn) {
  job_.servers = 4;
  job_.workers = 2;
  job_.beside_workers = true;
  for (int i = 1; i <= 3; ++i) job_.hosts.push_back({"", "10.77.0." + std::to_string(i)});
  Write(tell_ + "while [ $(cat $root/done 2>/dev/null | wc -l) -lt 6 ]; do sleep 0.02; done",
        "echo $* >> $root/listens; echo >> $root/done", "echo >> $root/done");
  EXPECT_TRUE(RunLocalJob(job_).ok());
  const std::string listens = ReadWholeFile((root_ / "listens").string(), 1000).value();
  for (const auto& [host, servers] : {std::pair{1, 1}, {2, 1}, {3, 2}}) {
    const std::string line = "--listen 10.77.0." + std::to_string(host) + "\n";
    int found = 0;
    for (size_t at = listens.find(line); at != std::string::npos; at = listens.find(line, at + 1)) {
      ++found;
    }
    EXPECT_EQ(found, servers) << listens;
  }
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, StartsProgramsElsewhereByWhatStandsForThem) {
  job_.hosts = {{"a", "{address}"}};
  job_.server_hosts = {{"b", "{address}"}};
  job_.worker_hosts = {{"c", "{address}"}, {"b", "{address}"}};
  job_.log_folder = root_.string();
  job_.elsewhere = [this](const Program& program, const std::string& run_dir) {
    std::ofstream(root_ / "placed", std::ios::app)
        << program.name << " on " << program.host << " in '" << run_dir << "'\n";
    Program stand_in = program;
    stand_in.host.clear();
    return stand_in;
  };
  Write(tell_ + "while [ $(cat $root/done 2>/dev/null | wc -l) -lt 3 ]; do sleep 0.02; done",
        "echo $* >> $root/listens; echo >> $root/done", "echo >> $root/done");
  EXPECT_TRUE(RunLocalJob(job_).ok());
  const std::string in = absl::StrCat(" in '", root_.string(), "'\n");
  EXPECT_EQ(ReadWholeFile((root_ / "placed").string(), 1000).value(),
            absl::StrCat("coordinator on a in ''\nserver-0 on b", in, "worker-0 on c", in,
                         "worker-1 on b", in));
  EXPECT_THAT(ReadWholeFile((root_ / "listens").string(), 1000).value(),
              HasSubstr("--listen {address}\n"));
  ExpectNobodyLeft();
}

// Represents a remote coordinator whose connection is lost: the coordinator itself is ending the
// job.
TEST_F(LocalJobTest, DoesNotRecoverTheJobOfACoordinatorThatMayLive) {
  RunElsewhere();
  Write("echo $* >> $root/starts\n" + tell_ +
            "while [ ! -e $root/up ]; do sleep 0.02; done; touch $root/lost\n"
            "echo 'connection to a lost' > $root/coordinator.log; kill -HUP $$",
        "while [ ! -e $root/lost ]; do sleep 0.02; done; sleep 0.2; touch $root/in_order",
        "touch $root/up; while [ ! -e $root/in_order ]; do sleep 0.02; done");
  job_.supervision.end_time = absl::Seconds(20);
  EXPECT_THAT(
      std::string(RunLocalJob(job_).message()),
      AllOf(HasSubstr("coordinator is gone: connection to a lost; the job was stopped; "),
            HasSubstr("resume with: tug launch 'my job' --set seed=2 --resume " + root_.string())));
  EXPECT_TRUE(fs::exists(root_ / "in_order"));
  EXPECT_THAT(ReadWholeFile((root_ / "starts").string(), 1000).value(),
              Not(HasSubstr("--recover")));
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, EndsACoordinatorElsewhereThatHadNotBegun) {
  RunElsewhere();
  Write(
      "trap 'touch $root/terminated; exit 0' TERM\ntouch $root/ready\n"
      "while true; do sleep 0.02; done",
      "true", "true");
  const pid_t pid = fork();
  if (pid == 0) _exit(absl::IsCancelled(RunLocalJob(job_)) ? 7 : 8);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!fs::exists(root_ / "ready") && absl::Now() < deadline) std::this_thread::yield();
  kill(pid, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(fs::exists(root_ / "terminated"));
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, SaysThatAHostIsNotThere) {
  job_.hosts = {{"no-such-host", "10.77.0.1"}};
  job_.coordinator_log = (root_ / "coordinator.log").string();
  Write(tell_, "true", "true");
  EXPECT_THAT(std::string(RunLocalJob(job_).message()),
              AllOf(HasSubstr("no-such-host"), HasSubstr("deploy/testbed up")));
}

TEST_F(LocalJobTest, SaysNothingMoreWhenTheCoordinatorFailed) {
  Write("exit 1", "true", "true");
  const absl::Status end = RunLocalJob(job_);
  EXPECT_EQ(end.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(end.message().empty());
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, StartsAnotherInPlaceOfANodeThatIsKilled) {
  Write(
      tell_ + "while [ ! -e $root/again ]; do sleep 0.02; done", "exec sleep 1000",
      "if mkdir $root/first 2>/dev/null; then kill -9 $$; fi; touch $root/again; exec sleep 1000");
  job_.workers = 1;
  job_.supervision.exit_time = absl::Milliseconds(200);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("worker-0 (pid "),
            HasSubstr(") was killed by signal 9 (Killed): starting a replacement (possibly out of "
                      "memory: check dmesg on that host)\n")));
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, StartsAnotherAfterTheLogFolderWasDeleted) {
  Write(tell_ + "while [ ! -e $root/again ]; do sleep 0.02; done", "exec sleep 1000",
        "if mkdir $root/first 2>/dev/null; then rm -r $root/logs; kill -9 $$; fi; "
        "echo again; touch $root/again; exec sleep 1000");
  job_.workers = 1;
  job_.supervision.exit_time = absl::Milliseconds(200);
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_EQ(ReadWholeFile((root_ / "logs/worker-0.log").string(), 1000).value(), "again\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, StartsSpareServersAndOneInPlaceOfAKilledServer) {
  Write(tell_ + "while [ $(cat $root/servers 2>/dev/null | wc -l) -lt 3 ]; do sleep 0.02; done",
        "echo $* >> $root/servers; "
        "if [ $# -eq 5 ] && mkdir $root/first 2>/dev/null; then kill -9 $$; fi; exec sleep 1000",
        "exec sleep 1000");
  job_.spare_servers = 1;
  job_.supervision.exit_time = absl::Milliseconds(200);
  EXPECT_TRUE(RunLocalJob(job_).ok());
  const std::string started = ReadWholeFile((root_ / "servers").string(), 1000).value();
  EXPECT_THAT(started, AllOf(HasSubstr("--name server-0 --coordinator 127.0.0.1:5\n"),
                             HasSubstr("--name server-0 --coordinator 127.0.0.1:5 --spare\n"),
                             HasSubstr("--name server-1 --coordinator 127.0.0.1:5 --spare\n")));
  const std::string servers =
      absl::StrReplaceAll(started, {{"--name server-0 ", ""}, {"--name server-1 ", ""}});
  const std::string regular = "server --coordinator 127.0.0.1:5\n";
  const std::string spare = "server --coordinator 127.0.0.1:5 --spare\n";
  EXPECT_EQ(absl::StrReplaceAll(servers, {{spare, "s"}, {regular, "r"}}).size(), 3u) << servers;
  EXPECT_EQ(absl::StrReplaceAll(servers, {{spare, ""}}), regular) << "its place may be taken";
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, ANodeThatLeavesIsNotReplaced) {
  Write(tell_ + "while [ ! -e $root/left ]; do sleep 0.02; done; sleep 0.2",
        "echo >> $root/started; touch $root/left; exit 0", "exec sleep 1000");
  job_.supervision.exit_time = absl::Milliseconds(200);
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_EQ(ReadWholeFile((root_ / "started").string(), 1000).value(), "\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, NamesANodeThatIsKilledAgainAndAgainAndEndsTheRest) {
  Write(tell_ + "exec sleep 1000", "echo hello; echo >> $root/deaths; kill -9 $$",
        "exec sleep 1000");
  const absl::Status end = RunLocalJob(job_);
  EXPECT_THAT(std::string(end.message()), HasSubstr("server-0 (pid "));
  EXPECT_THAT(
      std::string(end.message()),
      HasSubstr(
          "was killed by signal 9 (Killed) (possibly out of memory: check dmesg on that host) "
          "(last output: hello); the job was stopped; no checkpoint was written yet"));
  EXPECT_EQ(ReadWholeFile((root_ / "deaths").string(), 1000).value(), "\n\n\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, LeavesTheMessageOfAFailedNodeToTheCoordinator) {
  Write(tell_ + "while [ ! -e $root/failed ]; do sleep 0.02; done; exit 1", "exec sleep 1000",
        "touch $root/failed; exit 1");
  EXPECT_TRUE(RunLocalJob(job_).message().empty());
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, SaysWhatAFailedNodeSaidWhenTheCoordinatorDoesNot) {
  Write(tell_ + "exec sleep 1000", "exec sleep 1000", "echo 'tug: error: no text' >&2; exit 1");
  job_.supervision.report_time = absl::Milliseconds(200);
  EXPECT_THAT(std::string(RunLocalJob(job_).message()),
              HasSubstr("exited with code 1 (last output: tug: error: no text)"));
  ExpectNobodyLeft();
}

// Time spent waiting for the coordinator's report does not count as the node's lifetime.
TEST_F(LocalJobTest, EndsWhenANodeFailsAgainAndAgain) {
  Write(tell_ + "exec sleep 1000", "exec sleep 1000",
        "echo >> $root/failures; echo 'tug: error: no text' >&2; exit 1");
  job_.workers = 1;
  job_.supervision.quick_death = absl::Seconds(2);
  job_.supervision.report_time = absl::Seconds(2);
  EXPECT_THAT(std::string(RunLocalJob(job_).message()), HasSubstr("tug: error: no text"));
  EXPECT_EQ(ReadWholeFile((root_ / "failures").string(), 1000).value(), "\n\n\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, EndsWhenANodeCannotJoinHoweverLongItTries) {
  Write(tell_ + "exec sleep 1000", "exec sleep 1000",
        "echo >> $root/failures; echo 'tug: error: cannot reach' >&2; exit 1");
  job_.workers = 1;
  job_.supervision.quick_death = absl::ZeroDuration();
  job_.supervision.join_time = absl::Hours(1);
  job_.supervision.report_time = absl::ZeroDuration();
  EXPECT_THAT(std::string(RunLocalJob(job_).message()), HasSubstr("tug: error: cannot reach"));
  EXPECT_EQ(ReadWholeFile((root_ / "failures").string(), 1000).value(), "\n\n\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, AnotherCoordinatorTakesUpTheJobOfOneThatIsKilled) {
  Write("echo $* >> $root/starts\n" + tell_ +
            "if mkdir $root/first 2>/dev/null; then kill -9 $$; fi\n"
            "while [ ! -e $root/worked ]; do sleep 0.02; done",
        "exec sleep 1000", "touch $root/worked");
  job_.supervision.exit_time = absl::Milliseconds(200);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(RunLocalJob(job_).ok());
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("the coordinator (pid "),
            HasSubstr(") was killed by signal 9 (Killed): starting another one to recover the "
                      "job (possibly out of memory: check dmesg on that host)\n")));
  EXPECT_THAT(ReadWholeFile((root_ / "starts").string(), 1000).value(),
              HasSubstr("--recover " + root_.string() + "\n"));
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, NamesACoordinatorThatIsKilledAgainAndAgain) {
  Write("echo >> $root/deaths\n" + tell_ + "kill -9 $$", "exec sleep 1000", "exec sleep 1000");
  EXPECT_THAT(std::string(RunLocalJob(job_).message()),
              AllOf(HasSubstr("coordinator (pid "), HasSubstr("the job was stopped")));
  EXPECT_EQ(ReadWholeFile((root_ / "deaths").string(), 1000).value(), "\n\n\n");
  ExpectNobodyLeft();
}

TEST_F(LocalJobTest, TellsWhenACoordinatorIsKilledThatHadNotBegun) {
  Write("kill -9 $$", "exec sleep 1000", "exec sleep 1000");
  EXPECT_THAT(std::string(RunLocalJob(job_).message()), HasSubstr("coordinator (pid "));
  ExpectNobodyLeft();
}

// Ctrl-C: in a separate process, so that the job does not receive the test's own signals.
TEST_F(LocalJobTest, EndsInOrderOnTheFirstInterruptAndAtOnceOnTheSecond) {
  Write("trap 'touch $root/interrupted' INT\n" + tell_ + "while true; do sleep 0.02; done",
        "exec sleep 1000", "touch $root/ready; exec sleep 1000");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(strsignal(signal));
    const pid_t pid = fork();
    if (pid == 0) {
      ::signal(SIGHUP, SIG_DFL);  // the process that runs the tests may ignore it
      _exit(RunLocalJob(job_).message().find("interrupted twice") != std::string::npos ? 7 : 8);
    }
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    for (const char* mark : {"ready", "interrupted"}) {
      while (!fs::exists(root_ / mark) && absl::Now() < deadline) std::this_thread::yield();
      ASSERT_TRUE(fs::exists(root_ / mark)) << mark;
      kill(pid, signal);
    }
    int status = 0;
    absl::Time next = absl::Now() + StopWishes::kApart;  // from then on a separate interrupt
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (absl::Now() < next) continue;
      kill(pid, signal);
      next += StopWishes::kApart;
    }
    EXPECT_EQ(WEXITSTATUS(status), 7);
    ExpectNobodyLeft();
    for (const char* mark : {"ready", "interrupted", "pids"}) fs::remove_all(root_ / mark);
    fs::create_directories(root_ / "pids");
  }
}

// For callers with more jobs to run: as soon as the job is running, and when it is done except for
// its nodes.
TEST_F(LocalJobTest, MakesAnInterruptAnErrorWhereThatIsAsked) {
  job_.interrupt_is_error = true;
  for (const char* coordinator :
       {"trap 'exit 0' INT\n%s while true; do sleep 0.02; done",
        "%s while [ ! -e $root/working ]; do sleep 0.02; done; touch $root/ready"}) {
    fs::remove(root_ / "ready");
    fs::remove(root_ / "working");
    Write(absl::StrReplaceAll(coordinator, {{"%s", tell_}}), "exec sleep 1000",
          std::string(coordinator[0] == 't' ? "touch $root/ready" : "touch $root/working") +
              "; exec sleep 1000");
    const pid_t pid = fork();
    if (pid == 0) _exit(RunLocalJob(job_).message() == "interrupted" ? 7 : 8);
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!fs::exists(root_ / "ready") && absl::Now() < deadline) std::this_thread::yield();
    kill(pid, SIGINT);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(WEXITSTATUS(status), 7) << coordinator;
    ExpectNobodyLeft();
  }
}

}  // namespace
}  // namespace tug
