// SPDX-License-Identifier: Apache-2.0
// The examples of every `--help`, run in a shell as they stand, in a folder with the files that
// they name. None may be a wrong usage. Those that need other hosts, a GPU or minutes are ended
// after a moment; all others have to succeed.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr int kWrongUsage = 2;
constexpr absl::Duration kMoment = absl::Seconds(3);

// Commands that have examples.
constexpr const char* kCommands[] = {
    "new",
    "train",
    "launch",
    "status",
    "stop",
    "drain",
    "keys",
    "sample",
    "eval",
    "export",
    "coordinator",
    "server",
    "worker",
    "explain",
    "replay",
    "experiment",
    "bench push-pull",
    "bench collectives",
    "bench server",
    "bench training",
    "simulate faults",
    "simulate scheduling",
    "plan",
    "doctor",
    "help",
};

// Parts of examples that need more than a folder on this machine, or minutes, or that fail on
// purpose.
constexpr const char* kMayFail[] = {
    "--hosts",        "--slurm",    "--coordinator", "CUDA",      "--listen",
    "tug experiment", "tug bench",  "tug doctor",    "gpt2_124m", "quickstart.textproto",
    "tug stop",       "tug status", "--recover",     "tug drain", "tug new",
    "MASTER_ADDR",    "--watch",    "--workers 512", "--plant",
};

bool MayFail(const std::string& example) {
  return std::ranges::any_of(kMayFail,
                             [&](const char* part) { return absl::StrContains(example, part); });
}

class HelpExamplesTest : public TugTest, public testing::WithParamInterface<const char*> {
 protected:
  static std::string Folder(const std::string& program) {
    return fs::absolute(program).parent_path().string();
  }

  // `line` in bash, with tug in its PATH.
  Process& StartLine(const std::string& line) {
    return StartProgram("/bin/bash", {"-c", absl::StrCat("PATH=", Folder(kTug), ":$PATH; ", line)});
  }

  // Without the prompt of a host ("a$ tug ...") and sudo.
  Texts Examples(const std::string& command) {
    Process& help = Run(absl::StrSplit(absl::StrCat(command, " --help"), ' '));
    EXPECT_EQ(help.exit_code(), 0) << help.err();
    Texts examples;
    bool in_examples = false;
    for (const std::string& line : Texts(absl::StrSplit(help.out(), '\n'))) {
      if (absl::StartsWith(line, "Example")) in_examples = true;
      if (in_examples && absl::StartsWith(line, "  ") && absl::StrContains(line, "tug ")) {
        const std::string prefix = absl::StartsWith(line, "  sudo ") ? "sudo " : "$ ";
        const size_t begin = line.find(prefix);
        examples.push_back(line.substr(begin < 5 ? begin + prefix.size() : 2));
      }
    }
    return examples;
  }

  // The files and runs that examples name.
  void MakeFolder() {
    Write("job.textproto",
          "name: \"job\"\n"
          "cluster { servers: 1 workers: 2 }\n"
          "data { path: \"text.txt\" }\n"
          "train { steps: 20 global_batch: 4 eval_interval: 0 eval_samples: 16 }\n"
          "checkpoint { interval: 10 }\n");
    for (const char* name : {"my_text.txt", "other.txt"}) fs::copy(Path("text.txt"), Path(name));
    Write("hosts.txt", "host-a.invalid\nhost-b.invalid\n");
    fs::copy(fs::absolute("huggingface/testdata/tiny_gpt2"), Path("gpt2"));
    fs::create_directories(Path("deploy"));
    fs::copy(fs::absolute("deploy/jobs"), Path("deploy/jobs"));
  }

  void Succeed(const std::string& line) {
    Process& process = StartLine(line);
    ASSERT_TRUE(process.WaitForEnd(After(kPatience))) << line;
    EXPECT_EQ(process.exit_code(), 0) << line << "\n" << process.err();
  }
};

TEST_P(HelpExamplesTest, Run) {
  const Texts examples = Examples(GetParam());
  ASSERT_FALSE(examples.empty()) << GetParam();
  ASSERT_NO_FATAL_FAILURE(MakeFolder());
  for (const std::string& example : examples) {
    SCOPED_TRACE(example);
    for (const std::string run : {"runs/job-1", "runs/quickstart-1"}) {
      if (!absl::StrContains(example, run) || fs::exists(Path(run))) continue;
      ASSERT_NO_FATAL_FAILURE(Succeed(absl::StrCat(
          "tug train job.textproto --run-dir ", run, " --set train.steps=500",
          " --set checkpoint.interval=500 --set model.layers=1 --set model.width=16")));
    }
    const bool makes_keys = absl::StrContains(example, "tug keys job.keys");
    if (absl::StrContains(example, "job.keys") && !makes_keys && !fs::exists(Path("job.keys"))) {
      ASSERT_NO_FATAL_FAILURE(Succeed("tug keys job.keys"));
    }
    if (!MayFail(example)) {
      ASSERT_NO_FATAL_FAILURE(Succeed(example));
      continue;
    }
    Process& process = StartLine(absl::StrCat("exec ", example));
    if (process.WaitForEnd(After(kMoment))) {
      EXPECT_NE(process.exit_code(), kWrongUsage) << process.err();
    } else {
      EndsWhenAskedAgain(process, SIGINT);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, HelpExamplesTest, testing::ValuesIn(kCommands),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace tug
