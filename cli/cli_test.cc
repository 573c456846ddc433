// SPDX-License-Identifier: Apache-2.0
// Tests of the tug binary from a user's point of view: exit codes, one-line errors with a remedy,
// nothing left behind.

#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream text(root_ / "text.txt");
    for (int i = 0; i < 300; ++i) text << "In the beginning was the word. ";
    Job("job.textproto", "");
  }
  void Job(const std::string& name, const std::string& more) {
    std::ofstream(root_ / name) << "name: 'cli' data { path: 'text.txt' } " << more;
  }
  Outcome Tug(const std::string& arguments) { return Shell(binary_ + " " + arguments); }
  Outcome Shell(const std::string& script) {
    const std::string command = absl::StrCat("cd ", root_.string(), " && (", script, ") > ",
                                             root_.string(), "/output 2>&1 < /dev/null");
    Outcome outcome;
    outcome.exit_code = WEXITSTATUS(std::system(command.c_str()));
    outcome.output = ReadWholeFile((root_ / "output").string(), 1 << 20).value_or("");
    return outcome;
  }
  // Expects one line on stderr that contains `what`, and no run folder.
  void ExpectError(const std::string& arguments, int exit_code, const std::string& what) {
    const Outcome outcome = Tug(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments;
    EXPECT_THAT(outcome.output, StartsWith("tug: error: ")) << arguments;
    EXPECT_THAT(outcome.output, HasSubstr(what)) << arguments;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    std::error_code ignored;
    EXPECT_TRUE(!fs::exists(root_ / "runs") || fs::is_empty(root_ / "runs", ignored)) << arguments;
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "cli_test";
  const std::string binary_ = fs::absolute("cli/tug").string();
};

TEST_F(CliTest, HelpsEverywhere) {
  for (const char* command : {"", "train", "coordinator", "server", "worker", "status", "stop",
                              "drain", "sample", "eval", "simulate", "bench codecs", "plan"}) {
    const Outcome outcome = Tug(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.output, HasSubstr("Example")) << command;
    EXPECT_THAT(outcome.output, HasSubstr("tug ")) << command;
  }
  EXPECT_THAT(Tug("--version").output, StartsWith("tug "));
}

TEST_F(CliTest, RefusesWrongUsageWithCode2) {
  ExpectError("nonsense", 2, "see tug --help");
  ExpectError("train", 1, "no job given");
  ExpectError("train job.textproto --nonsense", 2, "see tug train --help");
  ExpectError("sample --from x --temperature hot", 2, "--temperature");
  ExpectError("status runs/a --coordinator 127.0.0.1:1", 2, "--coordinator");
  ExpectError("drain", 2, "NODE");
  ExpectError("drain 1 runs/a", 2, "NODE");
}

// An option that takes a value, as listed in the manual page.
struct ValueOption {
  std::string command;  // "bench codecs"
  std::string name;     // "--runs"
  std::string type;     // "UINT", "FILE", ...
  bool is_number() const {
    return std::any_of(std::begin(kNumbers), std::end(kNumbers),
                       [&](const char* number) { return absl::StartsWith(type, number); });
  }
  static constexpr const char* kNumbers[] = {"FLOAT", "INT", "UINT"};
};

std::vector<ValueOption> ValueOptions(const std::string& page) {
  const std::string section = ".SS \"tug ", option = "\\fB--", type = "\\fR \\fI";
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(page, {{"\\-", "-"}}), '\n');
  std::vector<ValueOption> options;
  std::string command;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, section)) {
      command = line.substr(section.size(), line.size() - section.size() - 1);
    }
    const size_t at = line.find(type);
    if (!absl::StartsWith(line, option) || at == std::string::npos) continue;
    options.push_back({command, line.substr(3, at - 3), line.substr(at + type.size())});
  }
  return options;
}

// The unknown option, which is checked last, keeps every command from running.
TEST_F(CliTest, NoNumberOfAnyCommandIsNegativeInfiniteOrNotANumber) {
  size_t numbers = 0;
  for (const ValueOption& option : ValueOptions(Tug("help man").output)) {
    const auto usage = [&](const std::string& value) {
      return absl::StrCat(option.command, " ", option.name, " '", value, "' --no-such-option");
    };
    if (!option.is_number()) {
      EXPECT_THAT(Tug(usage("word")).output, Not(HasSubstr("Could not convert")))
          << option.command << " " << option.name << " holds a number, which its type hides";
      continue;
    }
    ++numbers;
    for (const char* value : {"nan", "inf", "-1", "1e999", ""}) {
      const Outcome outcome = Tug(usage(value));
      EXPECT_EQ(outcome.exit_code, 2) << usage(value);
      EXPECT_THAT(outcome.output, AllOf(StartsWith("tug: error: "), HasSubstr(option.name),
                                        Not(HasSubstr("--no-such-option"))))
          << usage(value);
    }
  }
  EXPECT_GT(numbers, 60u);
  for (const char* node : {"nan", "1e999", "''"}) {
    ExpectError(absl::StrCat("drain ", node, " --coordinator 127.0.0.1:1"), 2, "NODE");
  }
}

TEST_F(CliTest, BenchCodecsComparesThemWithMemcpy) {
  const Outcome outcome = Tug("bench codecs --codec top_k --codec bf16 --bytes 64K,1M --runs 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* what : {"64 KiB", "1 MiB", "top_k", "bf16", "50.00", "memcpy"}) {
    EXPECT_THAT(outcome.output, HasSubstr(what));
  }
  ExpectError("bench codecs --codec zip", 2, "bf16");
  ExpectError("bench codecs --codec zip", 2, "zip");
  ExpectError("bench codecs --bytes 5", 2, "--bytes");
  ExpectError("bench codecs --density 0.7", 2, "--density");
}

TEST_F(CliTest, PlansTheLecturesModels) {
  const auto plan = [&](const std::string& arguments) {
    const Outcome outcome = Tug("plan " + arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return outcome.output;
  };
  const std::string gpt3 = plan("--preset gpt3");
  for (const char* row : {"\\| parameters +\\| 2 +\\| 350 GB ", "\\| gradients +\\| 2 +\\| 350 GB ",
                          "\\| master weights \\| 4 +\\| 700 GB ", "\\| m +\\| 4 +\\| 700 GB ",
                          "\\| v +\\| 4 +\\| 700 GB ",
                          "\\| GPUs for the deadline +\\| 759.548611 \\| 760 +\\| 800 +\\|"}) {
    EXPECT_THAT(gpt3, ContainsRegex(row));
  }
  const std::string stages = plan("--preset 7.5b");
  for (const char* row : {"\\| 120 GB +\\| 120 GB ", "\\| 31.4 GB +\\| 31.40625 GB ",
                          "\\| 16.6 GB +\\| 16.640625 GB ", "\\| 1.9 GB +\\| 1.875 GB "}) {
    EXPECT_THAT(stages, ContainsRegex(row));
  }
  EXPECT_THAT(plan("--preset 10b"), ContainsRegex("\\| total +\\| +\\| 190 GB +\\| 190 GB +\\| "
                                                  "176.95 GiB \\| 190 GB \\(~176 GiB\\) \\|"));
}

TEST_F(CliTest, PlansAJobAndWritesFigures) {
  const Outcome outcome = Tug("plan job.textproto --set cluster.servers=2 --json plan.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("server, of 2"));
  EXPECT_THAT(outcome.output, HasSubstr("give --tflops and --link"));
  EXPECT_THAT(ReadWholeFile((root_ / "plan.json").string(), 1 << 20).value_or(""),
              HasSubstr("checkpoint"));
  for (const char* own : {"--gpus 4", "--micro-batch 2", "--batch-tokens 4096", "--servers 2",
                          "--precision fp32", "--tokens 1e9", "--preset gpt3"}) {
    ExpectError(absl::StrCat("plan job.textproto ", own), 2, "excludes");
  }
  ExpectError("plan --set model.width=64", 2, "JOB");
  ExpectError("plan missing.textproto", 1, "missing.textproto");
  ExpectError("plan job.textproto --set data.tokenizer=CHARACTER", 1, "--vocabulary N");
}

TEST_F(CliTest, PlanNamesTheOptionThatMakesNoSense) {
  EXPECT_EQ(Tug("plan --parameters 1e9 --gpus 1e3 --servers 1,1e2").exit_code, 0);
  EXPECT_EQ(Tug("plan --preset 7.5b --layers 36 --width 4096 --heads 32").exit_code, 0);
  // An option that changes one of the lectures' figures removes them.
  EXPECT_THAT(Tug("plan --preset gpt3 --link 100gbit").output, HasSubstr("lectures |"));
  EXPECT_THAT(Tug("plan --preset gpt3 --recompute full").output, Not(HasSubstr("lectures |")));
  ExpectError("plan", 2, "--preset gpt3");
  ExpectError("plan --parameters 7.5B", 2, "7.5B is not a whole number such as");
  for (const char* wrong :
       {"--parameters -5",  "--parameters nan", "--parameters 0.5",  "--gpus 0",
        "--gpus -1",        "--gpus 1.5",       "--days inf",        "--tokens 0",
        "--utilization 51", "--tflops 0",       "--memory-gb 0",     "--layers 0",
        "--latency-us -1",  "--micro-batch 0",  "--buffers-gb -1",   "--servers 4,0",
        "--servers ''",     "--link fast",      "--host-link 0gbit", "--precision fp8",
        "--recompute some"}) {
    const std::string option = std::string(wrong).substr(0, std::string(wrong).find(' '));
    ExpectError(absl::StrCat("plan ", wrong), 2, option);
  }
  ExpectError("plan --parameters 1e9 --days 5", 2, "--tokens");
  ExpectError("plan --preset gpt3 --tensor 7", 2, "--tensor 7 must be a divisor of the 96 heads");
  ExpectError("plan --preset gpt3 --parameters 1e9", 2, "--parameters 1e+09 differs too much from");
  ExpectError("plan --preset gpt5", 2, "gpt3");
}

// Commands in code blocks of docs/plan.md: the text between "tug " and a remark.
TEST_F(CliTest, RunsThePlansThatItsDocumentHas) {
  fs::create_directories(root_ / "deploy/jobs");
  const char* job = "deploy/jobs/gpt2_124m.textproto";
  fs::copy_file(job, root_ / job);
  std::ifstream document("docs/plan.md");
  int commands = 0;
  for (std::string line; std::getline(document, line);) {
    if (!absl::StartsWith(line, "tug plan")) continue;
    const std::string arguments = line.substr(4, line.find(" #") - 4);
    const Outcome outcome = Tug(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.output;
    ++commands;
  }
  EXPECT_GE(commands, 6);
}

TEST_F(CliTest, FindsMistakesInTheJobBeforeAnyProcessIsStarted) {
  ExpectError("train missing.textproto", 1, "missing.textproto");
  Job("unknown.textproto", "train { stepps: 5 }");
  ExpectError("train unknown.textproto", 1, "stepps");
  ExpectError("train job.textproto --set train.stepps=5", 1, "stepps");
  ExpectError("train job.textproto --set model.layers=0", 1, "model.layers");
  ExpectError("train job.textproto --set model.width=30", 1, "model.heads");
}

TEST_F(CliTest, FindsMistakesInTheData) {
  ExpectError("train job.textproto --set data.path=gone.txt", 1, "gone.txt");
  std::ofstream(root_ / "empty.txt");
  ExpectError("train job.textproto --set data.path=empty.txt", 1, "empty.txt");
  ExpectError("train job.textproto --set data.path=job.textproto --set model.context=4096", 1,
              "job.textproto");
}

TEST_F(CliTest, FindsMistakesInPlaces) {
  ExpectError("train job.textproto --resume nowhere", 1, "nowhere");
  ExpectError("train job.textproto --run-dir .", 1, "not empty");
  ExpectError("status nowhere", 1, "not a run folder");
  ExpectError("status", 1, "--coordinator HOST:PORT");
  ExpectError("sample --from nowhere", 1, "nowhere");
  ExpectError("eval --from nowhere", 1, "nowhere");
}

TEST_F(CliTest, SimulatesSchedulingOnAnyNumberOfHosts) {
  std::ofstream(root_ / "replay.textproto")
      << "name: 'r' compute: REPLAY replay { profile: 'vgg16' size_scale: 0.01 } "
         "optimizer { clip: OFF } comm { segment_elements: 8192 } "
         "cluster { workers: 4 servers: 2 lanes_per_server: 1 }";
  const Outcome one = Tug("simulate scheduling replay.textproto --link 200mbit");
  EXPECT_EQ(one.exit_code, 0) << one.output;
  for (const char* row : {"bound", "fifo", "priority", "bytescheduler", "replay of vgg16"}) {
    EXPECT_THAT(one.output, HasSubstr(row));
  }
  const Outcome equal = Tug("simulate scheduling replay.textproto --policies fifo,fifo");
  EXPECT_THAT(equal.output, HasSubstr("\n\n4 workers, 2 servers: no policy gains 1% over fifo: "));
  const Outcome sizes =
      Tug("simulate scheduling replay.textproto --policies priority --workers 1,2000");
  EXPECT_EQ(sizes.exit_code, 0) << sizes.output;
  EXPECT_THAT(sizes.output, HasSubstr("2000"));
  ExpectError("simulate scheduling missing.textproto", 1, "missing.textproto");
  ExpectError("simulate scheduling replay.textproto --link fast", 1, "--link fast");
  ExpectError("simulate scheduling replay.textproto --policies best", 1, "--policies best");
  ExpectError("simulate scheduling replay.textproto --policies auto", 1, "real steps");
  ExpectError("simulate scheduling replay.textproto --latency-us inf", 2, "--latency-us: 'inf'");
  ExpectError("simulate scheduling replay.textproto --set comm.impair.delay_ms=1", 1, "--link");
  ExpectError(
      "simulate scheduling replay.textproto --set replay.size_scale=7 --set "
      "comm.segment_elements=1024 --set comm.partition_bytes=4096 --set "
      "cluster.virtual_workers=128 --workers 32",
      1, "comm.partition_bytes");
  ExpectError("simulate scheduling replay.textproto --workers 5000", 1, "from 1 to 4096");
  ExpectError("simulate scheduling replay.textproto --servers 1024", 1, "smaller segments");
  ExpectError("simulate scheduling replay.textproto --workers 1,2 --servers 1,2,3", 1,
              "the same number of values");
  ExpectError("simulate scheduling replay.textproto --set sync.policy=ASP", 1, "BSP");
  ExpectError("simulate scheduling job.textproto", 1, "compute: REPLAY");
  ExpectError("simulate", 2, "see tug simulate --help");
}

TEST_F(CliTest, WithoutTheLaboratorySaysWhatIsMissing) {
  const std::string alone = (root_ / "tug").string();
  fs::copy_file(binary_, alone);
  const Outcome bench = Shell(alone + " bench push-pull --bytes 4K");
  EXPECT_EQ(bench.exit_code, 1);
  EXPECT_THAT(bench.output,
              HasSubstr("tug bench needs tug-lab: cannot run " + alone + "-lab: No such"));
  for (const char* topic : {" help experiment", " help replay"}) {
    EXPECT_THAT(Shell(alone + topic).output, HasSubstr("Needs tug-lab: in the sources, run"))
        << topic;
  }
  EXPECT_EQ(Shell(alone + " help man").exit_code, 0);
}

TEST_F(CliTest, SaysWhenAnAddressIsNone) {
  ExpectError("stop --coordinator nonsense", 1, "HOST:PORT");
}

TEST_F(CliTest, SaysThatAFileOfTheEnvironmentIsAboutKeys) {
  const Outcome outcome =
      Shell("TUG_KEYS=/nonexistent " + binary_ + " status --coordinator 127.0.0.1:1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, StartsWith("tug: error: key file named by TUG_KEYS"));
  EXPECT_THAT(outcome.output, HasSubstr("/nonexistent"));
  EXPECT_THAT(outcome.output, HasSubstr("unset TUG_KEYS"));
}

TEST_F(CliTest, NamesAWorkingDirectoryThatWasDeleted) {
  const Outcome outcome =
      Shell("mkdir gone && cd gone && rmdir ../gone && " + binary_ + " train job.textproto");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("the working directory of this process was deleted: cd"));
}

TEST_F(CliTest, TheHelpTellsAStoppedJobFromOneThatIsDone) {
  for (const char* command : {"train", "launch", "coordinator"}) {
    const Outcome outcome = Tug(std::string(command) + " --help");
    EXPECT_THAT(outcome.output, HasSubstr("\"done:\"")) << command;
    EXPECT_THAT(outcome.output, HasSubstr("\"stopped:\"")) << command;
  }
}

TEST_F(CliTest, SaysWhenAnAddressCannotBeListenedOn) {
  ExpectError("coordinator job.textproto --listen nonsense", 1, "HOST:PORT");
  ExpectError("server --coordinator 127.0.0.1:1 --listen 0.0.0.0", 1,
              "not an address workers can connect to");
}

// A key error ends the server before it looks for the coordinator.
TEST_F(CliTest, AServerWarnsOfAnAddressThatOnlyItsHostReaches) {
  const std::string server =
      "TUG_KEYS=/nonexistent " + binary_ + " server --coordinator 127.0.0.1:1 --listen ";
  const std::string warning = "on this host, so nodes on other hosts cannot reach this server";
  EXPECT_THAT(Shell(server + "127.0.1.1").output,
              AllOf(HasSubstr("tug: warning: 127.0.1.1 resolves to 127.0.1.1 " + warning),
                    HasSubstr("tug: error: ")));
  EXPECT_THAT(Shell(server + "localhost").output,
              AllOf(HasSubstr("tug: error: "), Not(HasSubstr("warning"))));
}

}  // namespace
}  // namespace tug
