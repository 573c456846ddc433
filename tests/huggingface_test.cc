// SPDX-License-Identifier: Apache-2.0
// Import and export of Hugging Face models with real processes, and jobs with given or trained
// tokenizers.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HuggingFaceJobTest : public TugTest {
 protected:
  // Settings that give the job the fixture's model.
  static Texts TinyModel() {
    return {"model.layers=2",        "model.width=24",          "model.heads=3",
            "model.mlp_width=40",    "model.context=32",        "model.vocabulary=258",
            "train.steps=2",         "model.dropout=0",         "checkpoint.initial=true",
            "train.eval_interval=0", "optimizer.warmup_steps=1"};
  }

  static std::string Absolute(const std::string& runfile) { return fs::absolute(runfile).string(); }

  // Whether deploy/compare/read_gpt2.py finds no error. True without Python.
  bool PythonReads(const Texts& folders) const {
    if (std::system("python3 -c 'import json' >/dev/null 2>&1") != 0) return true;
    std::string command = "python3 " + Absolute("deploy/compare/read_gpt2.py");
    for (const std::string& folder : folders) absl::StrAppend(&command, " '", folder, "'");
    return std::system(command.c_str()) == 0;
  }

  // Copies the fixture and sets the weights of its last norm to `gain`.
  std::string WithGain(float gain) const {
    fs::remove_all(Path("changed"));
    fs::copy(tiny_, Path("changed"));
    const std::string path = Path("changed/model.safetensors");
    std::string bytes = ReadText(path);
    const auto file = SafetensorsReader::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    const auto norm =
        std::ranges::find(file->tensors(), "transformer.ln_f.weight", &TensorView::name);
    EXPECT_NE(norm, file->tensors().end());
    const auto begin = static_cast<size_t>(norm->bytes.data() - file->file_bytes().data());
    for (size_t i = 0; i < norm->bytes.size(); i += sizeof(gain)) {
      std::memcpy(bytes.data() + begin + i, &gain, sizeof(gain));
    }
    fs::remove(path);
    Write("changed/model.safetensors", bytes);
    return Path("changed");
  }

  const std::string tiny_ = Absolute("huggingface/testdata/tiny_gpt2");
};

TEST_F(HuggingFaceJobTest, RoundTripThroughServersIsByteEqual) {
  Train("run", TinyModel(), {"--init-from", tiny_});
  const Process& first =
      Run({"export", "--from", Path("run/checkpoints/step-00000000"), "--hf", Path("same")});
  ASSERT_EQ(first.exit_code(), 0) << first.err();
  EXPECT_THAT(first.out(), AllOf(HasSubstr("step 0"), HasSubstr("28 tensors")));
  EXPECT_TRUE(PythonReads({Path("same"), tiny_}));
  const auto before = SafetensorsReader::Open(tiny_ + "/model.safetensors");
  const auto after = SafetensorsReader::Open(Path("same/model.safetensors"));
  ASSERT_TRUE(before.ok() && after.ok());
  for (const TensorView& tensor : before->tensors()) {
    const auto same = std::ranges::find(after->tensors(), tensor.name, &TensorView::name);
    ASSERT_NE(same, after->tensors().end()) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name;
  }

  ASSERT_EQ(Run({"export", "--from", Path("run"), "--hf", Path("trained")}).exit_code(), 0);
  EXPECT_TRUE(PythonReads({Path("trained")}));
  ExpectErrorLine(Run({"export", "--from", Path("run"), "--hf", Path("trained")}),
                  {Path("trained"), "pass another one"});
  // A trained model initialises another job, from a folder and from a checkpoint.
  Train("from_folder", TinyModel(), {"--init-from", Path("trained")});
  Train("from_run", TinyModel(), {"--init-from", Path("run")});
  for (const std::string run : {"from_folder", "from_run"}) {
    ASSERT_EQ(Run({"export", "--from", Path(run + "/checkpoints/step-00000000"), "--hf",
                   Path(run + "_start")})
                  .exit_code(),
              0);
    EXPECT_TRUE(PythonReads({Path(run + "_start"), Path("trained")}));
  }
}

TEST_F(HuggingFaceJobTest, AnotherModelIsRefusedWithTheFlagsToSet) {
  Process& train = StartTraining("run", {}, {"--init-from", tiny_});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 1);
  EXPECT_THAT(train.err(), AllOf(HasSubstr("--set model.width=24"),
                                 HasSubstr("--set model.heads=3"), Not(HasSubstr("model.layers"))));
}

TEST_F(HuggingFaceJobTest, WeightsThatAreNotFiniteAreRefused) {
  const std::string folder = WithGain(std::nanf(""));
  Process& train = StartTraining("run", TinyModel(), {"--init-from", folder});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  EXPECT_EQ(train.exit_code(), 1);
  EXPECT_THAT(train.err(), AllOf(HasSubstr(folder), HasSubstr("element 0 of ln_f.weight is nan")));
}

// Finite weights that give logits which are not finite: no update can fix that.
TEST_F(HuggingFaceJobTest, ALossThatStaysNotFiniteIsAnErrorUnderEveryPolicy) {
  const std::string folder = WithGain(3e38f);
  for (const std::string policy : {"BSP", "SSP", "ASP"}) {
    SCOPED_TRACE(policy);
    for (const auto& [steps, first] :
         {std::pair{"2", "first of 2 steps"}, {"1000", "first of 10 steps"}}) {
      const std::string run = absl::StrCat(policy, "-", steps);
      Process& train = StartTraining(
          run, TinyModel() + Texts{"sync.policy=" + policy, absl::StrCat("train.steps=", steps)},
          {"--init-from", folder});
      ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
      EXPECT_EQ(train.exit_code(), 1);
      EXPECT_THAT(train.err(), AllOf(HasSubstr("tug: error: "),
                                     HasSubstr("step 1 was the " + std::string(first)),
                                     HasSubstr("train.init_from"), Not(HasSubstr("done: "))));
    }
  }
}

TEST_F(HuggingFaceJobTest, Gpt2TokenizerIsNeededOnceOnly) {
  fs::copy(Absolute("data/testdata/gpt2"), Path("bpe"));
  const Texts settings = {"data.tokenizer=GPT2_BPE", "data.tokenizer_path=bpe"};
  Train("run", settings + Texts{"train.steps=10", "checkpoint.interval=5"});
  fs::remove_all(Path("bpe"));
  const Process& sample =
      Run({"sample", "--from", Path("run"), "--prompt", "The", "--tokens", "5"});
  EXPECT_EQ(sample.exit_code(), 0) << sample.err();
  EXPECT_EQ(Run({"eval", "--from", Path("run")}).exit_code(), 0);
  // Resumes in its own folder, then branches into another.
  const Process& again =
      Run(Texts{"train", job(), "--resume", Path("run")} + Set(settings + Texts{"train.steps=12"}));
  EXPECT_EQ(again.exit_code(), 0) << again.err();
  Train("branch", settings + Texts{"train.steps=14"}, {"--resume", Path("run")});
  ASSERT_EQ(Run({"export", "--from", Path("run"), "--hf", Path("out")}).exit_code(), 0);
  EXPECT_TRUE(PythonReads({Path("out")}));
  ExpectErrorLine(
      Run({"train", job(), "--set", settings[0], "--set", settings[1], "--run-dir", Path("other")}),
      {"data.tokenizer_path", "bpe"});
}

TEST_F(HuggingFaceJobTest, SentencePiecesAreTrainedOnTheTextAndKept) {
  const Texts settings = {"data.tokenizer=SENTENCEPIECE", "data.pieces=400"};
  Train("run", settings + Texts{"train.steps=10", "checkpoint.interval=5"});
  const Process& sample =
      Run({"sample", "--from", Path("run"), "--prompt", "The", "--tokens", "5"});
  EXPECT_EQ(sample.exit_code(), 0) << sample.err();
  EXPECT_EQ(Run({"eval", "--from", Path("run"), "--data", Path("text.txt")}).exit_code(), 0);
  // Resumes in its own folder, then branches into another.
  const Process& again =
      Run(Texts{"train", job(), "--resume", Path("run")} + Set(settings + Texts{"train.steps=12"}));
  EXPECT_EQ(again.exit_code(), 0) << again.err();
  Train("branch", settings + Texts{"train.steps=14"}, {"--resume", Path("run")});
  ASSERT_EQ(Run({"export", "--from", Path("run"), "--hf", Path("out")}).exit_code(), 0);
  EXPECT_TRUE(fs::exists(Path("out/tokenizer.model")));
}

}  // namespace
}  // namespace tug
