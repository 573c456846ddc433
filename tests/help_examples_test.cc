// SPDX-License-Identifier: Apache-2.0
// The examples of every `--help`, and the commands of the README and the tutorials, run in a shell
// in a folder with the files that they name. None may be a wrong usage. Those that need other
// hosts, a GPU or minutes are ended after a moment; all others have to succeed.

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
// On pages also those whose run is that of another line.
constexpr const char* kMayFailOnPages[] = {"tug explain", "tug replay", "tug train --resume",
                                           "mine.textproto"};

bool HasAny(const std::string& example, std::span<const char* const> parts) {
  return std::ranges::any_of(parts,
                             [&](const char* part) { return absl::StrContains(example, part); });
}

class HelpExamplesTest : public TugTest, public testing::WithParamInterface<const char*> {
 protected:
  static std::string Folder(const std::string& program) {
    return fs::absolute(program).parent_path().string();
  }

  virtual bool MayFail(const std::string& example) const { return HasAny(example, kMayFail); }

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
          "cluster { workers: 2 }\n"
          "data { path: \"text.txt\" }\n"
          "train { steps: 20 global_batch: 4 eval_interval: 0 eval_samples: 16 }\n"
          "checkpoint { interval: 10 }\n");
    for (const char* name : {"my_text.txt", "other.txt"}) fs::copy(Path("text.txt"), Path(name));
    Write("hosts.txt", "host-a.invalid\nhost-b.invalid\n");
    fs::copy(fs::absolute("huggingface/testdata/tiny_gpt2"), Path("gpt2"));
    fs::create_directories(Path("deploy"));
    fs::copy(fs::absolute("deploy/jobs"), Path("deploy/jobs"));
  }

  // Runs an example, with the runs and keys that it names.
  void RunExample(const std::string& example) {
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
    if (!MayFail(example)) return Succeed(example);
    Process& process = StartLine(absl::StrCat("exec ", example));
    if (process.WaitForEnd(After(kMoment))) {
      EXPECT_NE(process.exit_code(), kWrongUsage) << process.err();
    } else {
      EndsWhenAskedAgain(process, SIGINT);
    }
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
  for (const std::string& example : examples) ASSERT_NO_FATAL_FAILURE(RunExample(example));
}

INSTANTIATE_TEST_SUITE_P(Commands, HelpExamplesTest, testing::ValuesIn(kCommands),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
                           return name;
                         });

class PageCommandsTest : public HelpExamplesTest {
 protected:
  bool MayFail(const std::string& example) const override {
    return HasAny(example, kMayFail) || HasAny(example, kMayFailOnPages);
  }

  // Text between backquotes in a line, and lines of code blocks.
  static Texts CodeOf(const std::string& page) {
    Texts code;
    bool in_block = false;
    for (const std::string& line : Texts(absl::StrSplit(ReadText(page), '\n'))) {
      if (absl::StartsWith(line, "```")) {
        in_block = !in_block;
      } else if (in_block) {
        code.push_back(line);
      } else {
        const Texts parts = absl::StrSplit(line, '`');
        for (size_t i = 1; i < parts.size(); i += 2) code.push_back(parts[i]);
      }
    }
    return code;
  }

  // Commands of tug on a page; a setting alone becomes one of `tug train`.
  static Texts CommandsOf(const std::string& page) {
    Texts commands;
    for (const std::string& code : CodeOf(page)) {
      std::string line = absl::StrReplaceAll(code, {{"bazel-bin/cli/tug", "tug"},
                                                    {"JOB", "job.textproto"},
                                                    {"RUN", "runs/job-1"},
                                                    {"PATH", "my_text.txt"},
                                                    {"--init-from DIR", "--init-from gpt2"},
                                                    {"--hf DIR", "--hf exported"},
                                                    {" --kubernetes", ""}});
      if (absl::StartsWith(line, "--set ") || absl::StartsWith(line, "--init-from ")) {
        line = "tug train job.textproto " + line;
      }
      const bool is_a_name = line == "tug launch" || line == "tug new" || line == "tug doctor";
      if (absl::StartsWith(line, "tug ") && !is_a_name && !absl::StrContains(line, "${")) {
        commands.push_back(line);
      }
    }
    return commands;
  }
};

TEST_P(PageCommandsTest, Run) {
  const Texts commands = CommandsOf(GetParam());
  ASSERT_FALSE(commands.empty());
  ASSERT_NO_FATAL_FAILURE(MakeFolder());
  for (const std::string& command : commands) ASSERT_NO_FATAL_FAILURE(RunExample(command));
}

INSTANTIATE_TEST_SUITE_P(Pages, PageCommandsTest,
                         testing::Values("README.md", "docs/tutorials/train.md",
                                         "docs/tutorials/your_text.md"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return fs::path(info.param).stem().string();
                         });

}  // namespace
}  // namespace tug
