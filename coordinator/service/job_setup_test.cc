// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_setup.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"
#include "config/job_config.h"
#include "coordinator/observe/progress_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/layout.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Texts = std::vector<std::string>;

class JobSetupTest : public ::testing::Test {
 protected:
  JobSetupTest()
      : root_((fs::path(testing::TempDir()) /
               testing::UnitTest::GetInstance()->current_test_info()->name())
                  .lexically_normal()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    Write("text.txt", Repeated("in the beginning was the word. "));
  }

  std::string Path(const std::string& name) const { return (root_ / name).string(); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }

  std::string Read(const std::string& name) const {
    return ReadWholeFile(Path(name), 1 << 20).value_or("");
  }

  static std::string Repeated(const std::string& text) {
    std::string all;
    for (int i = 0; i < 100; ++i) all += text;
    return all;
  }

  absl::StatusOr<CoordinatorOptions> SetUp(
      const std::string& run, const Texts& overrides,
      const std::optional<FoundCheckpoint>& restore = std::nullopt) const {
    const auto config = ParseJobConfig(
        absl::StrCat("data { path: '", Path("text.txt"), "' } ",
                     "model { layers: 1 width: 16 heads: 2 context: 8 } train { steps: 6 }"),
        "test", overrides);
    if (!config.ok()) return config.status();
    fs::create_directories(Path(run));
    return SetUpJob(*config, Path(run), restore);
  }

  std::string ErrorOf(const Texts& overrides) const {
    return std::string(SetUp("refused", overrides).status().message());
  }

  // Commits a checkpoint of a job with zero weights; returns its folder.
  std::string Commit(const CoordinatorOptions& job, uint64_t version) const {
    const JobConfig& config = job.config;
    const BlockTable blocks =
        ModelLayout(config.model(), config.data().resolved_symbols(),
                    static_cast<uint32_t>(config.data().resolved_labels_size()));
    std::vector<std::vector<float>> zeros;
    std::vector<SegmentPart> parts;
    for (const BlockSpec& block : blocks.blocks()) {
      const std::vector<float>& values = zeros.emplace_back(ElementCount(block));
      parts.push_back({block.name(), 0, values.size(), values, values, values});
    }
    const auto file = WriteLanePart(job.run_dir, version, 0, parts);
    EXPECT_TRUE(file.ok()) << file.status();
    Manifest manifest;
    *manifest.mutable_config() = config;
    *manifest.mutable_blocks() = blocks;
    manifest.set_version(version);
    ManifestFile& entry = *manifest.add_files();
    entry.set_name(file->name);
    entry.set_size_bytes(file->size_bytes);
    entry.set_xxh3(file->xxh3);
    const auto committed = CommitCheckpoint(job.run_dir, manifest, Retention{.keep = 5});
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed.value_or("");
  }

  // Creates a run with a checkpoint of step 3.
  void MakeRun(const std::string& run, const Texts& overrides) const {
    const auto job = SetUp(run, overrides);
    ASSERT_TRUE(job.ok()) << job.status();
    Commit(*job, 3);
  }

  const fs::path root_;
};

TEST_F(JobSetupTest, SaysWhichFolderItCannotMake) {
  fs::create_directories(root_ / "run");
  Write("run/data", "a file");
  EXPECT_THAT(std::string(SetUp("run", {}).status().message()),
              HasSubstr(absl::StrCat("cannot create the folder ", Path("run/data"))));
}

// A later commit of the other run must not mix two checkpoints.
TEST_F(JobSetupTest, AJobBeginsWithTheCheckpointThatWasTheNewestWhenItStarted) {
  const auto first = SetUp("first", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string at_3 = Commit(*first, 3);
  const auto job = SetUp("second", {"train.init_from=" + Path("first")});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.train().init_from(), at_3);
  const std::string at_5 = Commit(*first, 5);
  EXPECT_EQ(job->config.train().init_from(), at_3);
  EXPECT_EQ(SetUp("third", {"train.init_from=" + Path("first")})->config.train().init_from(), at_5);
  EXPECT_EQ(SetUp("fourth", {"train.init_from=" + at_3})->config.train().init_from(), at_3);
}

TEST_F(JobSetupTest, AJobThatBeginsWithACheckpointReadsItsTextWithThatTokenizer) {
  MakeRun("first", {"data.tokenizer=CHARACTER"});
  const auto first = FindCheckpoint(Path("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  Write("other.txt", Repeated("a word had no beginning. "));
  const Texts other = {"data.path=" + Path("other.txt"), "train.init_from=" + Path("first")};
  Texts overrides = other;
  overrides.push_back("data.tokenizer=CHARACTER");
  const auto job = SetUp("second", overrides);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.data().resolved_alphabet(),
            first->manifest.config().data().resolved_alphabet());
  EXPECT_THAT(ErrorOf(other), AllOf(HasSubstr("train.init_from " + first->folder),
                                    HasSubstr("pass --set data.tokenizer=CHARACTER"),
                                    Not(HasSubstr("tokenizer_path")), Not(HasSubstr("\n"))));
  Write("other.txt", Repeated("quite a zoo. "));
  EXPECT_THAT(ErrorOf(overrides), HasSubstr("is not in the alphabet"));
}

TEST_F(JobSetupTest, TrainedPiecesAreTakenOverAndTheirFlagsCanBeFollowed) {
  MakeRun("first", {"data.tokenizer=SENTENCEPIECE", "data.pieces=270"});
  Write("text.txt", Repeated("quite another text, of other words. "));
  const std::string from = "train.init_from=" + Path("first");
  EXPECT_THAT(ErrorOf({from}), HasSubstr("pass --set data.tokenizer=SENTENCEPIECE"));
  const auto job = SetUp("second", {from, "data.tokenizer=SENTENCEPIECE"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.data().resolved_tokenizer(),
            FindCheckpoint(Path("first"))->manifest.config().data().resolved_tokenizer());
}

TEST_F(JobSetupTest, AClassifierKeepsItsLabelsAndClasses) {
  const Texts lines = {"model.family=ENCODER", "train.init_from=" + Path("first")};
  Write("text.txt", Repeated("good\tyes\nbad\tno\n"));
  MakeRun("first", {"model.family=ENCODER"});
  EXPECT_EQ(ErrorOf(lines), "");
  EXPECT_THAT(ErrorOf({lines[0], lines[1], "model.classes=5"}),
              HasSubstr("pass --set model.classes=2"));
  Write("text.txt", Repeated("good\tyes\nevil\tno\n"));
  EXPECT_THAT(ErrorOf(lines),
              AllOf(HasSubstr("class 0 is \"bad\" there but \"evil\" in the job's text"),
                    HasSubstr("a text with the same 2 labels"), Not(HasSubstr("\n"))));
  Write("text.txt", Repeated("good\tyes\nbad\tno\nugly\tno\n"));
  EXPECT_THAT(ErrorOf(lines), HasSubstr("class 2 is none there but \"ugly\""));
}

TEST_F(JobSetupTest, AJobSaysAtItsStartWhatItReads) {
  Write("text.txt", Repeated("in the beginning "));
  const auto running = SetUp("running", {"cluster.virtual_workers=1", "train.global_batch=19"});
  ASSERT_TRUE(running.ok()) << running.status();
  const size_t bytes = Repeated("in the beginning ").size();
  EXPECT_EQ(running->data_notice,
            absl::StrCat("text: 1 file, ", WithThousands(bytes), " bytes, ", WithThousands(bytes),
                         " tokens; 6 steps of 19 samples: 0.6 epochs"));

  fs::create_directories(Path("folder/old"));
  for (const char* name : {"folder/a.txt", "folder/b.txt", "folder/.DS_Store", "folder/a.txt~"}) {
    Write(name, Repeated("good\tyes\nbad\tno\ngood\tindeed\n"));
  }
  const auto lines = SetUp("lines", {"model.family=ENCODER", "data.path=" + Path("folder")});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(lines->data_notice,
              MatchesRegex("text: 2 files, ([0-9,]+) lines, [0-9,]+ bytes, [0-9,]+ tokens; "
                           "labels: bad [0-9,]+, good [0-9,]+; "
                           "not read: .DS_Store, a.txt~, old/; 6 steps of .* epochs"));
}

TEST_F(JobSetupTest, AJobThatGoesOnSaysWhatItsCheckpointLacksOfWhatPushesLeftOut) {
  const Texts without = {"cluster.virtual_workers=2", "comm.push_codec.top_k={}",
                         "comm.push_codec.error_feedback=false", "comm.push_codec.warmup_steps=0"};
  Texts with = without;
  with[2] = "comm.push_codec.error_feedback=true";
  MakeRun("first", with);
  const auto from = FindCheckpoint(Path("first"));
  ASSERT_TRUE(from.ok()) << from.status();
  const auto job = SetUp("second", with, *from);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->data_notice,
              HasSubstr("has no error-feedback residuals of virtual workers 0, 1"));
  const auto another = SetUp("third", without, *from);
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_THAT(another->data_notice, Not(HasSubstr("residuals")));
}

TEST_F(JobSetupTest, ARunThatIsNotResumedKeepsItsTokensAndConfiguration) {
  MakeRun("run", {});
  const auto from = FindCheckpoint(Path("run"));
  ASSERT_TRUE(from.ok()) << from.status();
  const std::string tokens = Read("run/data/tokens.bin"), config = Read("run/config.textproto");
  ASSERT_NE(tokens, "");
  Write("other.txt", Repeated("quite another text. "));
  const auto refusal = [&](const Texts& overrides) {
    const absl::Status status = SetUp("run", overrides, *from).status();
    EXPECT_TRUE(Read("run/data/tokens.bin") == tokens);
    EXPECT_EQ(Read("run/config.textproto"), config);
    EXPECT_FALSE(fs::exists(Path("run/data/tokens.bin.tmp")));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal({"data.path=" + Path("other.txt")}), HasSubstr("set data.path to the same"));
  EXPECT_THAT(refusal({"data.tokenizer=CHARACTER"}),
              HasSubstr("data.tokenizer is BYTE in the checkpoint"));
  EXPECT_THAT(refusal({"data.path=" + Path("gone.txt")}), HasSubstr("gone.txt"));
  Write("text.txt", Repeated("in the beginning was the word. ") + "more");
  EXPECT_THAT(refusal({}), HasSubstr("set data.path to the same"));
  Write("text.txt", Repeated("in the beginning was the word. "));
  const auto resumed = SetUp("run", {}, *from);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(resumed->changed_settings.empty());
  const auto longer = SetUp("run", {"train.steps=9"}, *from);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_THAT(longer->changed_settings, ::testing::Contains("train.steps 6 -> 9"));
  EXPECT_THAT(longer->data_notice, HasSubstr("changed settings: train.steps 6 -> 9"));
}

TEST_F(JobSetupTest, PathsThatNoMessageHoldsAreRefusedBeforeTheyAreRead) {
  Write("te\xE9xt.txt", Repeated("in the beginning was the word. "));
  EXPECT_THAT(ErrorOf({"data.path=" + Path("te\xE9xt.txt")}),
              AllOf(HasSubstr("data.path = "), HasSubstr("te\\xe9xt.txt is not UTF-8")));
  EXPECT_FALSE(fs::exists(Path("refused/data")));
  EXPECT_THAT(std::string(PlanRun(Path("caf\xE9"), "").status().message()),
              AllOf(HasSubstr("--resume "), HasSubstr("caf\\xe9 is not UTF-8")));
}

TEST_F(JobSetupTest, PathsLeadWhereTheKernelLeads) {
  fs::create_directories(Path("disk/sub"));
  fs::create_directory_symlink("disk/sub", Path("link"));
  const fs::path disk = fs::canonical(root_ / "disk");
  Write("disk/text.txt", Repeated("the other text. "));
  MakeRun("disk/first", {});
  const auto job = SetUp("second", {"data.path=" + Path("link/../text.txt"),
                                    "train.init_from=" + Path("link/../first")});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->config.data().path(), (disk / "text.txt").string());
  EXPECT_EQ(job->config.train().init_from(), (disk / "first/checkpoints/step-00000003").string());
  const auto plan = PlanRun(Path("link/../first/"), "");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->run_dir, (disk / "first").string());
}

TEST_F(JobSetupTest, TooFewRandomSamplesNameTheirField) {
  const Texts random = {"data.path=",      "model.family=ENCODER",    "data.random.samples=40",
                        "model.classes=2", "data.random.symbols=100", "cluster.virtual_workers=8"};
  EXPECT_THAT(ErrorOf(random), AllOf(HasSubstr("data.random.samples = 40 leaves 4 for validation"),
                                     HasSubstr("raise it, or set data.validation_fraction: 0")));
  for (const std::string remedy : {"data.random.samples=80", "data.validation_fraction=0"}) {
    Texts followed = random;
    followed.push_back(remedy);
    EXPECT_EQ(ErrorOf(followed), "") << remedy;
  }
}

TEST_F(JobSetupTest, LabelsThatNoMessageHoldsAreRefused) {
  std::string text;
  for (int i = 0; i < 60000; ++i) absl::StrAppend(&text, i, std::string(220, 'x'), "\tx\n");
  Write("text.txt", text);
  EXPECT_THAT(ErrorOf({"model.family=ENCODER"}),
              AllOf(HasSubstr("the 60000 labels of " + Path("text.txt")), HasSubstr("12582912"),
                    HasSubstr("use fewer or shorter labels")));
}

TEST_F(JobSetupTest, AReplayHasTheProfileScaledAndABatchForEachVirtualWorker) {
  const Texts replay = {"data.path=",
                        "compute=REPLAY",
                        "replay.profile=resnet50",
                        "replay.time_scale=0.5",
                        "replay.size_scale=0.1",
                        "cluster.workers=3"};
  const auto job = SetUp("replay", replay);
  ASSERT_TRUE(job.ok()) << job.status();
  const ReplayProfile& profile = job->config.replay().resolved_profile();
  ASSERT_EQ(profile.blocks_size(), 18);
  EXPECT_EQ(profile.blocks(17).parameters(), 204'900u);
  EXPECT_EQ(job->layout.blocks.blocks_size(), 18);
  EXPECT_EQ(job->config.train().micro_batch(), 32u);
  EXPECT_EQ(job->config.train().global_batch(), 3 * 32u);
  EXPECT_THAT(job->data_notice, HasSubstr("replay of resnet50, times x 0.5, sizes x 0.1"));
  EXPECT_FALSE(fs::exists(Path("replay/data"))) << "no text is read";
}

TEST_F(JobSetupTest, AProfileThatCannotBeReplayedIsRefusedInALine) {
  const auto error_of = [this](const std::string& blocks, const std::string& more = "seed=1") {
    Write("p.textproto", "name: 'p' batch: 1 " + blocks);
    return ErrorOf({"data.path=", "compute=REPLAY", "replay.profile=" + Path("p.textproto"), more});
  };
  EXPECT_EQ(error_of("blocks { name: 'a' parameters: 9 }"), "");
  for (const std::string& error :
       {error_of("blocks { name: 'a b' parameters: 9 }"), error_of("blocks { parameters: 9 }"),
        error_of("blocks { name: 'a' parameters: 9 } blocks { name: 'a' parameters: 9 }"),
        error_of("blocks { name: 'a' parameters: 9000000000000 }"),
        error_of("blocks { name: 'a' parameters: 9 forward_ms: 9000 }", "replay.time_scale=2")}) {
    EXPECT_THAT(error, AllOf(HasSubstr("replay.profile " + Path("p.textproto") + ": "),
                             Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace tug
