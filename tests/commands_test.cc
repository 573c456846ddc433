// SPDX-License-Identifier: Apache-2.0
// Commands other than `tug train`, applied to its run: status, sample, eval, and all help texts.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu/cpu_affinity.h"
#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CommandsTest : public DaemonTest {
 protected:
  // Runs a command, expects success without stderr output, and returns its stdout.
  std::string Output(const Texts& arguments) {
    const Process& process = Run(arguments);
    EXPECT_EQ(process.exit_code(), 0) << process.command() << "\n" << process.err();
    EXPECT_EQ(process.err(), "") << process.command();
    return process.out();
  }
};

TEST_F(CommandsTest, EachHasHelpWithAnExample) {
  EXPECT_THAT(Output({"--help"}), AllOf(HasSubstr("train"), HasSubstr("Examples:")));
  for (const char* command : {"train", "coordinator", "server", "worker", "status", "stop",
                              "sample", "eval", "export", "plan", "doctor", "launch", "help"}) {
    EXPECT_THAT(Output({command, "--help"}), AllOf(HasSubstr("--help"), HasSubstr("Example"),
                                                   HasSubstr(absl::StrCat("tug ", command))));
  }
}

TEST_F(CommandsTest, DescribesTheJobFile) {
  EXPECT_THAT(Output({"help", "job"}), AllOf(HasSubstr("message JobConfig"),
                                             HasSubstr("segment_elements"), HasSubstr("Default")));
}

TEST_F(CommandsTest, HelpDescribesCommandsAndFields) {
  EXPECT_EQ(Output({"help", "train"}), Output({"train", "--help"}));
  EXPECT_EQ(Output({"help"}), Output({}));
  EXPECT_EQ(Output({"help", "bench", "push-pull"}), Output({"bench", "push-pull", "--help"}));
  EXPECT_THAT(Output({"help", "job", "train.steps"}),
              AllOf(StartsWith("train.steps: optional uint64\n"), HasSubstr("Default 1000")));
}

TEST_F(CommandsTest, SuggestsWhatWasMeant) {
  const auto suggests = [&](const Texts& arguments, const std::string& meant) {
    const Process& process = Run(arguments);
    EXPECT_NE(process.exit_code(), 0);
    EXPECT_THAT(process.err(), HasSubstr("did you mean " + meant + "?")) << process.command();
  };
  suggests({"tarin"}, "train");
  suggests({"train", "--rum-dir", "x"}, "--run-dir");
  suggests({"help", "tarin"}, "train");
  suggests({"help", "job", "train.stesp"}, "train.steps");
  suggests({"train", job(), "--set", "steps=5"}, "train.steps");
  Write("other.textproto", "train { stesp: 5 }");
  suggests({"train", Path("other.textproto")}, "steps");
}

TEST_F(CommandsTest, TellsItsVersion) {
  EXPECT_THAT(Output({"--version"}), ContainsRegex("^tug [0-9]+\\.[0-9]+\\.[0-9]+ .*wire format"));
}

// The job file of the first start is deleted before the second.
TEST_F(CommandsTest, ResumesRunWithoutItsJobFile) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"train.steps=6", "optimizer.learning_rate=0.002"}));
  fs::remove(job());
  const Process& resumed = Run({"train", "--resume", Path("run"), "--set", "train.steps=9"});
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  EXPECT_THAT(resumed.err(), AllOf(HasSubstr("changed settings: train.steps 6 -> 9\n"),
                                   HasSubstr("done: 9 of 9 steps")));
  EXPECT_THAT(ReadText(Path("run/config.textproto")), HasSubstr("learning_rate: 0.002"));
  EXPECT_THAT(ReadText(Path("run/metrics.jsonl")),
              HasSubstr(R"("step":6,"changed":["train.steps 6 -> 9"])"));
  EXPECT_THAT(ReadText(Path("run/loss.svg")), HasSubstr("train.steps 6 -&gt; 9"));
  ExpectErrorLine(Run({"train"}), {"no job given", "--resume RUN"});
}

TEST_F(CommandsTest, NewWritesAJobFileThatTrains) {
  std::string text;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&text, "line ", i, " of a text\n");
  Write("mine.txt", text);
  const Texts create = {"new", "mine", "--data", Path("mine.txt"), "--out", Path("mine.textproto")};
  const Process& made = Run(create);
  ASSERT_EQ(made.exit_code(), 0) << made.err();
  EXPECT_THAT(made.err(), HasSubstr("tug train " + Path("mine.textproto")));
  const Process& trained = Run({"train", Path("mine.textproto"), "--run-dir", Path("run"), "--set",
                                "train.steps=20", "--set", "optimizer.warmup_steps=2"});
  ASSERT_EQ(trained.exit_code(), 0) << trained.err();
  EXPECT_THAT(trained.err(),
              ContainsRegex("text: 1 file, [0-9,]+ bytes, [0-9,]+ tokens; 20 steps"));
  ExpectErrorLine(Run(create), {Path("mine.textproto") + " exists", "--out"});
  Write("table.csv", "id,text\n1,x\n");
  ExpectErrorLine(Run({"new", "other", "--data", Path("table.csv")}), {"CSV", "FILE.jsonl"});
  Write("words.jsonl", "{\"text\": \"one\"}\n{\"words\": \"two\"}\n");
  ExpectErrorLine(Run({"new", "other", "--data", Path("words.jsonl")}), {"words.jsonl", "text"});
}

TEST_F(CommandsTest, StatusOfAnEndedRunSummarisesIt) {
  Process& train = StartTraining("run", {});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  for (const Texts& command : {Texts{"status"}, Texts{"status", "--watch"}}) {
    const Process& status = Run(command + Texts{Path("run")});
    EXPECT_EQ(status.exit_code(), 0) << status.err();
    EXPECT_THAT(status.out(), ContainsRegex("^job [a-z]+: done, 50 of 50 steps\ntraining loss "
                                            "[0-9.]+; validation loss [0-9.]+ at step 50"));
    EXPECT_THAT(status.out(), HasSubstr("last checkpoint: step 50\nnext: tug sample --from "));
  }
  ExpectErrorLine(Run({"stop", Path("run")}),
                  {"the job has ended; continue it with: tug train --resume " + Path("run")});
}

TEST_F(CommandsTest, TrainLeavesARunFolderWithEverythingInIt) {
  const Process& train = StartTraining("run", {});
  ASSERT_TRUE(const_cast<Process&>(train).WaitForEnd(After(kPatience)));
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  for (const char* name :
       {"config.textproto", "metrics.jsonl", "loss.svg", "data/tokens.bin", "logs/coordinator.log",
        "logs/server-0.log", "logs/worker-1.log", "checkpoints/step-00000050/manifest.textproto"}) {
    EXPECT_TRUE(fs::exists(Path(absl::StrCat("run/", name)))) << name;
  }
  EXPECT_FALSE(fs::exists(Path("run/coordinator"))) << "address of a coordinator that has ended";
  EXPECT_THAT(ReadText(Path("run/loss.svg")), AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
  EXPECT_THAT(train.err(), AllOf(HasSubstr("done: 50 of 50 steps"), HasSubstr("step 50/50"),
                                 HasSubstr("tokens/s"), HasSubstr("validation loss"),
                                 HasSubstr("training paused for at most"), HasSubstr("peak memory"),
                                 HasSubstr("tug sample --from run")));
  EXPECT_EQ(train.out(), "");
}

TEST_F(CommandsTest, TrainNamesRunFoldersByItself) {
  for (const char* run : {"runs/tiny-1", "runs/tiny-2"}) {
    Output({"--version"});
    EXPECT_EQ(Run(Texts{"train", job()} +
                  Set({"train.steps=1", "optimizer.warmup_steps=0", "train.eval_samples=2"}))
                  .exit_code(),
              0);
    EXPECT_EQ(NewestCheckpoint(run), 1u) << run;
  }
}

TEST_F(CommandsTest, StatusShowsARunningJobAndItsNodes) {
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless()));
  ASSERT_NO_FATAL_FAILURE(WaitForCheckpoint(coordinator(), "run"));
  const std::string by_run = Output({"status", Path("run")});
  EXPECT_THAT(by_run, StartsWith("job tiny: running, step "));
  EXPECT_THAT(by_run,
              AllOf(HasSubstr("of 100,000,000, loss "), HasSubstr("tokens/s"),
                    HasSubstr(absl::StrCat("run folder ", Path("run"))),
                    HasSubstr("last checkpoint: step "), HasSubstr("lanes tcp://127.0.0.1:"),
                    HasSubstr("virtual workers 0,"), HasSubstr("virtual workers 1,"),
                    HasSubstr("memory "), Not(HasSubstr("dropped"))));
  for (const Process* node : nodes_) {
    EXPECT_THAT(by_run, HasSubstr(absl::StrCat("(pid ", node->pid(), ",")));
  }
  EXPECT_THAT(Output({"status", "--coordinator", address()}),
              StartsWith("job tiny: running, step "));
  EXPECT_THAT(Output({"stop", Path("run")}), HasSubstr("stopping"));
  for (Process* node : nodes_) ASSERT_TRUE(node->WaitForEnd(After(kPatience)));
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
}

TEST_F(CommandsTest, AResultThatCannotBeWrittenIsAnError) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"train.steps=10"}));
  // The last command would write for an hour.
  for (const Texts& command : {Texts{"plan", "--preset", "gpt3"}, Texts{"plan", "--help"},
                               Texts{"sample", "--from", Path("run"), "--tokens", "10000000"}}) {
    const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    Process& refused = StartOn(full.get(), command);
    ASSERT_TRUE(refused.WaitForEnd(After(kPatience)));
    EXPECT_EQ(refused.exit_code(), 1);
    // `tug plan | head -1`: ends with SIGPIPE, as a shell expects.
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    const FileDescriptor unread(ends[1]);
    Process& piped = StartOn(unread.get(), command);
    ASSERT_TRUE(piped.WaitForEnd(After(kPatience)));
    EXPECT_EQ(piped.exit_code(), 128 + SIGPIPE);
  }
}

TEST_F(CommandsTest, StatusShowsWhoIsMissing) {
  ASSERT_NO_FATAL_FAILURE(StartCoordinator({}));
  EXPECT_THAT(Output({"status", "--coordinator", address()}), HasSubstr("waiting for nodes"));
  EXPECT_EQ(Run({"stop", Path("run")}).exit_code(), 0);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  EXPECT_EQ(coordinator().exit_code(), 0);
}

TEST_F(CommandsTest, SampleWritesTheSameTextForTheSameSeed) {
  ASSERT_NO_FATAL_FAILURE(Train("run"));
  const Texts sample = {"sample", "--from", Path("run"), "--prompt", "The boat", "--tokens", "60"};
  const std::string text = Output(sample + Texts{"--seed", "5"});
  EXPECT_THAT(text, StartsWith("The boat"));
  EXPECT_EQ(text.size(), 8u + 60u + 1u) << "a byte a token, and the end of the line";
  EXPECT_EQ(Output(sample + Texts{"--seed", "5"}), text);
  EXPECT_NE(Output(sample + Texts{"--seed", "6"}), text);
  // Greedy sampling ignores the seed.
  const Texts greedy = sample + Texts{"--temperature", "0"};
  EXPECT_EQ(Output(greedy + Texts{"--seed", "5"}), Output(greedy + Texts{"--seed", "6"}));
  // A checkpoint given by its path: other weights, other text.
  const std::string at_25 = Path("run/checkpoints/step-00000025");
  EXPECT_NE(
      Output({"sample", "--from", at_25, "--tokens", "60", "--prompt", "The boat", "--seed", "5"}),
      text);
  // Only the last tokens of a prompt longer than the context are used.
  const std::string prompt = ReadText(Path("text.txt")).substr(0, 50);
  const std::string read = prompt.substr(prompt.size() - 32);
  const Texts next = {"sample", "--from", Path("run"), "--tokens", "1", "--temperature", "0"};
  const auto token = [&](const std::string& text) {
    return Output(next + Texts{"--prompt", text}).substr(text.size());
  };
  EXPECT_EQ(token(prompt), token(read));
  // Generates a text longer than the context.
  EXPECT_EQ(Output({"sample", "--from", Path("run"), "--tokens", "100"}).size(), 101u);
}

TEST_F(CommandsTest, SampleRefusesWhatTheModelCannotRead) {
  ASSERT_NO_FATAL_FAILURE(
      Train("run", {"data.tokenizer=CHARACTER", "train.steps=1", "optimizer.warmup_steps=0"}));
  const Process& sample = Run({"sample", "--from", Path("run"), "--prompt", "The ö"});
  ExpectErrorLine(sample, {"U+00F6", "alphabet"});
}

TEST_F(CommandsTest, EvalAgreesWithTheLastEvaluationOfTheRun) {
  ASSERT_NO_FATAL_FAILURE(Train("run"));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  const std::string loss = absl::StrFormat("loss %.6f", losses->validation.at(50));
  for (const char* threads : {"1", "2"}) {
    EXPECT_THAT(Output({"eval", "--from", Path("run"), "--threads", threads}),
                AllOf(StartsWith("step-00000050, validation split: "), HasSubstr(loss)));
  }
  const std::string of_text = Output({"eval", "--from", Path("run"), "--data", Path("text.txt")});
  EXPECT_THAT(of_text, AllOf(HasSubstr("text.txt"), HasSubstr("over 199999 tokens")));
}

// Cores may be restricted by taskset, Slurm or containers.
TEST_F(CommandsTest, EvalAndReplayTakeTheCoresThatTheyMayUse) {
  const CpuBudget all = ReadCpuBudget();
  if (all.cores.size() < 2) GTEST_SKIP() << "one core only: nothing to choose from";
  const std::vector<int> one = {all.cores.front().number};
  const StartThreadsOn bounded(one);
  for (const char* command : {"eval", "replay"}) {
    // CLI11 writes a default as =1, from 2.4 on as [1].
    EXPECT_THAT(Output({command, "--help"}), ContainsRegex("--threads [^\n]*(=1[ \n]|\\[1\\])"));
  }
}

TEST_F(CommandsTest, EvalOfATextLeavesNothingInTheFolderForTemporaryFiles) {
  ASSERT_NO_FATAL_FAILURE(
      Train("run", {"data.tokenizer=CHARACTER", "train.steps=1", "optimizer.warmup_steps=0"}));
  const std::string temporary = Path("temporary");
  ASSERT_EQ(::setenv("TMPDIR", temporary.c_str(), 1), 0);
  const Texts eval = {"eval", "--from", Path("run"), "--data"};
  ExpectErrorLine(Run(eval + Texts{Path("text.txt")}), {"TMPDIR"});
  fs::create_directory(temporary);
  EXPECT_THAT(Output(eval + Texts{Path("text.txt")}), HasSubstr("over 199999 tokens"));
  EXPECT_TRUE(fs::is_empty(temporary));
  Write("other.txt", "The ö is not in the alphabet of the run.\n");
  ExpectErrorLine(Run(eval + Texts{Path("other.txt")}), {"U+00F6"});
  EXPECT_TRUE(fs::is_empty(temporary));
  ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace tug
