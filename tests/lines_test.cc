// SPDX-License-Identifier: Apache-2.0
// Models of lines from text to prediction; selection of the best checkpoint, and early stopping.

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "checkpoint/best_checkpoint.h"
#include "checkpoint/checkpoint.h"
#include "coordinator/observe/run_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

const Texts kClassifier = {"data.path=lines.txt", "model.family=ENCODER",
                           "data.tokenizer=CHARACTER", "train.eval_samples=0"};

class LinesTest : public TugTest {
 protected:
  std::string Output(const Texts& arguments) {
    const Process& process = Run(arguments);
    EXPECT_EQ(process.exit_code(), 0) << process.err();
    return process.out();
  }
  std::string File(const std::string& name) const {
    return ReadWholeFile(Path(name), 1 << 20).value_or("");
  }
};

TEST_F(LinesTest, AClassifierIsTrainedMeasuredAndAsked) {
  ASSERT_NO_FATAL_FAILURE(Train("run", kClassifier));
  EXPECT_THAT(File("run/metrics.jsonl"), HasSubstr("\"accuracy\":"));
  EXPECT_THAT(File("run/metrics.jsonl"), HasSubstr("lines are truncated to model.context = 32"));
  EXPECT_THAT(File("run/metrics.jsonl"), HasSubstr("; labels: "));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_THAT(Output({"eval", "--from", Path("run")}),
              AllOf(HasSubstr(absl::StrFormat("loss %.6f", losses->validation.at(50))),
                    HasSubstr("accuracy "), HasSubstr(" samples")));
  const Texts ask = {"sample", "--from", Path("run"), "--prompt"};
  const std::string answer = Output(ask + Texts{"The small boat"});
  EXPECT_THAT(answer, MatchesRegex("[a-z]+ [0-9.]+%, [a-z]+ [0-9.]+%, [a-z]+ [0-9.]+%\n"));
  EXPECT_EQ(Output(ask + Texts{"  The small boat \r\n"}), answer) << "as a line of the text";
  ExpectErrorLine(Run(ask + Texts{"The\tboat"}), {"the line has a tab"});
  Write("other.txt", "\xEF\xBB\xBFsmall\tThe small boat.\r\nold\tThe old rope.\n");
  EXPECT_THAT(Output({"eval", "--from", Path("run"), "--data", Path("other.txt")}),
              HasSubstr("over 2 samples"));
  Write("other.txt", "small\tThe small boat.\nwooden\tThe rope.\n");
  ExpectErrorLine(Run({"eval", "--from", Path("run"), "--data", Path("other.txt")}),
                  {"other.txt", "line 2", "wooden"});
}

TEST_F(LinesTest, AnEncoderDecoderIsTrainedMeasuredAndAsked) {
  const Texts settings = {"data.path=lines.txt", "model.family=ENCODER_DECODER"};
  ASSERT_NO_FATAL_FAILURE(Train("run", settings));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_LT(losses->training.at(50), losses->training.at(1) - 1);
  EXPECT_THAT(Output({"eval", "--from", Path("run")}),
              AllOf(HasSubstr(absl::StrFormat("loss %.6f", losses->validation.at(50))),
                    HasSubstr("perplexity "), HasSubstr("accuracy "), HasSubstr(" tokens")));
  const std::string answer = Output({"sample", "--from", Path("run"), "--prompt", "small"});
  EXPECT_LE(answer.size(), 33u) << "a line of the context at most";
  EXPECT_EQ(Output({"sample", "--from", Path("run"), "--prompt", "small"}), answer);
}

TEST_F(LinesTest, BadLinesAreRefusedBeforeTheJobStarts) {
  Write("bad.txt", "a\tb\nno tab\n");
  const Process& train = Run({"train", job(), "--set", "data.path=bad.txt", "--set",
                              "model.family=ENCODER", "--run-dir", Path("run")});
  ExpectErrorLine(train, {"bad.txt: line 2 has no tab", "label<TAB>text"});
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

TEST_F(LinesTest, RandomSamplesNeedNoText) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"data.path=", "model.family=ENCODER", "model.classes=2",
                                        "data.random.samples=100", "data.random.symbols=1000"}));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_LT(losses->training.at(50), 0.1) << "always class 0";
  EXPECT_THAT(Output({"eval", "--from", Path("run")}),
              HasSubstr("accuracy 100.00% over 10 samples"));
}

// An evaluation measures exactly the weights in the checkpoint of its version.
TEST_F(LinesTest, TheBestCheckpointStaysAndHasTheLossOfItsEvaluation) {
  ASSERT_NO_FATAL_FAILURE(
      Train("run", kClassifier + Texts{"optimizer.learning_rate=0.3", "checkpoint.interval=10",
                                       "train.eval_interval=10", "checkpoint.keep=1"}));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("run"));
  ASSERT_TRUE(losses.ok()) << losses.status();
  const auto best =
      std::min_element(losses->validation.begin(), losses->validation.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(Path("run/best"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->manifest.version(), best->first);
  EXPECT_EQ(ReadBest(Path("run"))->loss, best->second);
  EXPECT_EQ(NewestCheckpoint("run"), 50u);
  EXPECT_THAT(Output({"eval", "--from", Path("run/best")}),
              HasSubstr(absl::StrFormat("loss %.6f", best->second)));
  size_t folders = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(Path("run/checkpoints"))) {
    ++folders;
  }
  EXPECT_EQ(folders, best->first == 50 ? 1u : 2u);
}

TEST_F(LinesTest, AJobThatNoLongerImprovesEndsEarlyAndCanGoOn) {
  const Texts settings = kClassifier + Texts{"train.patience=2", "train.min_improvement=1000",
                                             "train.eval_interval=10", "train.steps=1000000"};
  Process& train = StartTraining("run", settings);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 0);
  EXPECT_THAT(train.err(),
              AllOf(HasSubstr("): the job stops early (train.patience)"),
                    HasSubstr("stopped early: "), HasSubstr("validation loss: best ")));
  EXPECT_THAT(File("run/metrics.jsonl"), HasSubstr("\"reason\":\"stopped early\",\"best_step\":"));
  EXPECT_GE(NewestCheckpoint("run"), 30u);
  // The resumed job knows the best evaluation so far.
  Process& again = Start(Texts{"train", job(), "--resume", Path("run")} + Set(settings));
  ASSERT_TRUE(again.WaitForEnd(After(kPatience)));
  EXPECT_EQ(again.exit_code(), 0);
  EXPECT_THAT(again.err(), HasSubstr("stopped early: "));
  const std::string before = again.err().substr(0, again.err().find("the job stops early"));
  EXPECT_THAT(before, HasSubstr("evaluation of step"));
  EXPECT_EQ(before.find("evaluation of step"), before.rfind("evaluation of step"))
      << "the first evaluation is the last straw";
}

}  // namespace
}  // namespace tug
