// SPDX-License-Identifier: Apache-2.0
// The same job with the same virtual workers has the same bits, regardless of processes, lanes,
// segments, threads, exchange and interruptions: weights, Adam's m and v, training and validation
// losses. Real processes, 50 steps with dropout and clipping on.

#include <filesystem>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr char kStep25[] = "/checkpoints/step-00000025";

struct Variation {
  const char* name;
  Texts settings;
};
std::ostream& operator<<(std::ostream& out, const Variation& variation) {
  return out << variation.name;
}
std::string NameOf(const ::testing::TestParamInfo<Variation>& info) { return info.param.name; }

class ExactnessTestBase : public TugTest {
 protected:
  struct Result {
    CheckpointState at_25;
    CheckpointState at_50;
    Losses losses;
  };

  static void TearDownTestSuite() { baseline_.reset(); }

  Result ReadResult(const std::string& run) {
    const absl::StatusOr<CheckpointState> at_25 = ReadState(Path(run) + kStep25);
    const absl::StatusOr<CheckpointState> at_50 = ReadState(Path(run));
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(at_25.ok()) << at_25.status();
    EXPECT_TRUE(at_50.ok()) << at_50.status();
    EXPECT_TRUE(losses.ok()) << losses.status();
    if (HasFailure()) return {};
    return {*at_25, *at_50, *losses};
  }

  Result RunOf(const std::string& run, const Texts& settings) {
    Train(run, settings);
    return HasFailure() ? Result() : ReadResult(run);
  }

  // The unmodified job, run once for all tests: two servers with one lane each, two workers.
  const Result& Baseline() {
    if (baseline_.has_value()) return *baseline_;
    baseline_ = RunOf("baseline", {});
    fs::remove_all(KeptCheckpoint());
    fs::create_directories(KeptCheckpoint().parent_path());
    fs::copy(Path("baseline") + kStep25, KeptCheckpoint(), fs::copy_options::recursive);
    return *baseline_;
  }
  // Copy of the baseline's checkpoint of step 25.
  static fs::path KeptCheckpoint() {
    return fs::absolute(fs::path(::testing::TempDir()) / "kept/checkpoints/step-00000025");
  }

  static void ExpectSame(const Result& expected, const Result& actual) {
    {
      SCOPED_TRACE("checkpoint of step 25");
      ExpectSameState(expected.at_25, actual.at_25);
    }
    ExpectSameState(expected.at_50, actual.at_50);
    ExpectSameLosses(expected.losses, actual.losses);
  }

 private:
  static std::optional<Result> baseline_;
};
std::optional<ExactnessTestBase::Result> ExactnessTestBase::baseline_;

class ExactnessTest : public ExactnessTestBase, public ::testing::WithParamInterface<Variation> {};

// Ensures that the comparisons of the other tests are meaningful.
TEST_F(ExactnessTest, TheJobLearnsAndTheSeedMatters) {
  const Result& base = Baseline();
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(base.at_50.version, 50u);
  ASSERT_EQ(base.losses.training.size(), 50u);
  EXPECT_EQ(base.losses.validation.size(), 3u) << "after steps 20, 40 and 50";
  EXPECT_LT(base.losses.training.at(50), base.losses.training.at(1) - 0.5);
  EXPECT_LT(base.losses.validation.at(50), base.losses.validation.at(20));
  EXPECT_EQ(base.at_50.bits.size(), 12u) << "w, m and v of embedding, two layers and head";
  EXPECT_NE(base.at_25.bits, base.at_50.bits);
  EXPECT_NE(RunOf("seed", {"seed=2"}).at_50.bits, base.at_50.bits);
}

using SameBits = ExactnessTest;
TEST_P(SameBits, AsTwoWorkersAndTwoServers) {
  const Result expected = Baseline();
  ASSERT_FALSE(HasFailure());
  const Result actual = RunOf("varied", GetParam().settings);
  ASSERT_FALSE(HasFailure());
  ExpectSame(expected, actual);
}

// So little credit that partitions wait and overtake each other.
const Texts kLittleCredit = {"comm.shared_memory=false", "comm.segment_elements=4096",
                             "comm.partition_bytes=16384", "comm.credit_bytes=32768",
                             "comm.pull_credit_bytes=32768"};

INSTANTIATE_TEST_SUITE_P(
    Exactness, SameBits,
    ::testing::Values(
        Variation{"ReRun", {}}, Variation{"OneWorker", {"cluster.workers=1"}},
        Variation{"OneServer", {"cluster.servers=1"}},
        Variation{"ThreeServers", {"cluster.servers=3"}},
        Variation{"TwoLanes", {"cluster.lanes_per_server=2"}},
        Variation{"FourLanes", {"cluster.lanes_per_server=4"}},
        Variation{"ALaneForEverySegment", {"cluster.servers=3", "cluster.lanes_per_server=4"}},
        Variation{"OverTcp", {"comm.shared_memory=false"}},
        Variation{"OverTcpOneWorkerAndThreeServers",
                  {"comm.shared_memory=false", "cluster.workers=1", "cluster.servers=3"}},
        Variation{"SmallestSegments", {"comm.segment_elements=1024", "comm.partition_bytes=4096"}},
        Variation{"SmallestSegmentsOverTcp",
                  {"comm.segment_elements=1024", "comm.partition_bytes=4096",
                   "comm.shared_memory=false"}},
        Variation{"LargerSegments", {"comm.segment_elements=8192"}},
        Variation{"OneSegmentABlock",
                  {"comm.segment_elements=65536", "comm.partition_bytes=262144"}},
        Variation{"LargerPartitionsInOrder",
                  {"comm.partition_bytes=262144", "comm.scheduler=FIFO", "comm.checksum=false"}},
        Variation{"FifoUnderLittleCredit", kLittleCredit + Texts{"comm.scheduler=FIFO"}},
        Variation{"PriorityUnderLittleCredit", kLittleCredit + Texts{"comm.scheduler=PRIORITY"}},
        Variation{"ByteSchedulerUnderLittleCredit",
                  kLittleCredit + Texts{"comm.scheduler=BYTESCHEDULER"}},
        Variation{"TwoThreads", {"cluster.compute_threads=2"}},
        Variation{"AllAtOnce",
                  {"cluster.workers=1", "cluster.servers=3", "cluster.lanes_per_server=2",
                   "comm.segment_elements=8192", "cluster.compute_threads=2"}}),
    NameOf);

TEST_F(ExactnessTest, HasTheSameBitsUnderATunerThatChangesItsMindAtEveryStep) {
  const Result expected = Baseline();
  ASSERT_FALSE(HasFailure());
  // So slow that a heartbeat passes within a step or two.
  const Result actual = RunOf(
      "tuned", {"comm.scheduler=AUTO", "comm.tuner.trials=1000", "comm.tuner.steps_per_trial=1",
                "comm.segment_elements=1024", "comm.partition_bytes=16384",
                "comm.credit_bytes=32768", "comm.shared_memory=false", "comm.impair.rate_mbit=60"});
  ASSERT_FALSE(HasFailure());
  ExpectSame(expected, actual);
  const std::string metrics = ReadText(Path("tuned/metrics.jsonl"));
  std::set<std::string> tried;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StrContains(line, R"("kind":"trial")")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, "partition_bytes");
    tried.insert(std::string(parts.back().substr(0, parts.back().find("seconds"))));
  }
  EXPECT_GE(tried.size(), 5u) << metrics;
}

// Families of jobs with their own bits, which must not depend on how they are exchanged.
struct Family {
  const char* name;
  Texts settings;
  std::vector<Texts> variations;  // the others are compared with the first
};
std::ostream& operator<<(std::ostream& out, const Family& family) { return out << family.name; }
std::string NameOfFamily(const ::testing::TestParamInfo<Family>& info) { return info.param.name; }

class FamilyTest : public ExactnessTestBase, public ::testing::WithParamInterface<Family> {};
TEST_P(FamilyTest, HasTheSameBitsHoweverItIsExchanged) {
  const Result& baseline = Baseline();
  ASSERT_FALSE(HasFailure());
  const Family& family = GetParam();
  std::optional<Result> first;
  for (const Texts& variation : family.variations) {
    SCOPED_TRACE(absl::StrJoin(variation, " "));
    const std::string run = absl::StrCat("run-", &variation - family.variations.data());
    const Result result = RunOf(run, family.settings + variation);
    ASSERT_FALSE(HasFailure());
    if (first.has_value()) {
      ExpectSame(*first, result);
    } else {
      first = result;
      EXPECT_NE(result.at_50.bits, baseline.at_50.bits) << "the settings had no effect";
    }
  }
}

constexpr char kTcp[] = "comm.shared_memory=false";
constexpr char kShared[] = "comm.shared_memory=true";
constexpr char kSparse[] = "comm.sparse_embeddings=true";
constexpr char kWhole[] = "comm.sparse_embeddings=false";
constexpr char kOneServer[] = "cluster.servers=1";
constexpr char kOneWorker[] = "cluster.workers=1";
constexpr char kLines[] = "data.path=lines.txt";

INSTANTIATE_TEST_SUITE_P(
    Exactness, FamilyTest,
    ::testing::Values(
        // Embedding rows are pushed and pulled over TCP only.
        Family{"Untied",
               {"model.tied_head=false"},
               {{kTcp, kWhole},
                {kTcp, kSparse},
                {kTcp, kSparse, kOneServer, kOneWorker},
                {kShared, kWhole},
                {kShared, kSparse}}},
        Family{"Bf16Pulls",
               {"comm.pull_format=BF16"},
               {{kTcp}, {kShared}, {kTcp, kOneServer}, {kShared, kOneServer}}},
        Family{"Int8Pulls",
               {"comm.pull_format=INT8"},
               {{kTcp}, {kShared}, {kTcp, kOneServer}, {kShared, kOneServer, kOneWorker}}},
        Family{"PullsOfChanges",
               {"comm.pull_format=CHANGES"},
               {{kTcp},
                {kShared},
                {kTcp, "cluster.servers=3", "cluster.lanes_per_server=2"},
                {kShared, kOneServer, kOneWorker}}},
        Family{"Bf16Pushes",
               {"comm.push_codec.bf16={}"},
               {{kTcp}, {kShared}, {kTcp, kOneServer}, {kShared, kOneServer}}},
        Family{"Bf16BothUntied",
               {"comm.push_codec.bf16={}", "comm.pull_format=BF16", "model.tied_head=false"},
               {{kTcp, kSparse}, {kTcp, kWhole}, {kShared, kOneServer, kOneWorker}}},
        // With error feedback residuals, and without warm-up.
        Family{"TopK",
               {"comm.push_codec.top_k.density=0.1", "comm.push_codec.min_elements=0",
                "comm.push_codec.warmup_steps=0"},
               {{kTcp}, {kShared, kOneServer}, {kTcp, kOneServer, kOneWorker}}},
        Family{
            "OneBitInt8Pulls",
            {"comm.push_codec.one_bit={}", "comm.push_codec.vectors=true", "comm.pull_format=INT8"},
            {{kTcp}, {kShared, kOneServer, kOneWorker}}},
        Family{"Qsgd",
               {"comm.push_codec.qsgd.levels=7", "comm.push_codec.blocks=h*"},
               {{kTcp}, {kShared, kOneServer, kOneWorker}}},
        Family{"Classifier",
               {kLines, "model.family=ENCODER"},
               {{kTcp, kWhole}, {kTcp, kSparse}, {kShared, kOneServer, kOneWorker}}},
        Family{
            "EncoderDecoder",
            {kLines, "model.family=ENCODER_DECODER", "train.global_batch=8", "train.micro_batch=2"},
            {{kTcp, kWhole}, {kTcp, kSparse}, {kShared, kOneServer, kOneWorker}}}),
    NameOfFamily);

using Resumed = ExactnessTest;
TEST_P(Resumed, EqualsNoInterruption) {
  const Result expected = Baseline();
  ASSERT_FALSE(HasFailure());
  Train("resumed", GetParam().settings, {"--resume", KeptCheckpoint().string()});
  ASSERT_FALSE(HasFailure());
  const absl::StatusOr<CheckpointState> state = ReadState(Path("resumed"));
  const absl::StatusOr<Losses> losses = ReadLosses(Path("resumed"));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(losses.ok()) << losses.status();
  ExpectSameState(expected.at_50, *state);
  ExpectSameLosses(LossesAfter(expected.losses, 25), *losses);
}

INSTANTIATE_TEST_SUITE_P(
    Exactness, Resumed,
    ::testing::Values(Variation{"OnTheSame", {}}, Variation{"OnOneServer", {"cluster.servers=1"}},
                      Variation{"OnMoreServersAndLanesAndOneWorker",
                                {"cluster.servers=3", "cluster.lanes_per_server=4",
                                 "cluster.workers=1", "cluster.compute_threads=2"}},
                      Variation{"OnLargerSegments", {"comm.segment_elements=8192"}}),
    NameOf);

// Jobs with error feedback: residuals of one push are added to the next.
using ResumedFamily = ExactnessTest;
TEST_P(ResumedFamily, EqualsNoInterruption) {
  const Result expected = RunOf("whole", GetParam().settings);
  ASSERT_FALSE(HasFailure());
  for (const Texts& more : {Texts(), Texts{"cluster.servers=1", "cluster.workers=1"}}) {
    SCOPED_TRACE(absl::StrJoin(more, " "));
    const std::string run = absl::StrCat("resumed-", more.size());
    Train(run, GetParam().settings + more, {"--resume", Path("whole") + kStep25});
    ASSERT_FALSE(HasFailure());
    const absl::StatusOr<CheckpointState> state = ReadState(Path(run));
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_TRUE(losses.ok()) << losses.status();
    ExpectSameState(expected.at_50, *state);
    ExpectSameLosses(LossesAfter(expected.losses, 25), *losses);
  }
  // The residuals make the difference, so the checkpoint must have them.
  for (const fs::directory_entry& entry : fs::directory_iterator(Path("whole") + kStep25)) {
    if (absl::StartsWith(entry.path().filename().string(), "residual-")) return;
  }
  ADD_FAILURE() << "the checkpoint has no residuals";
}

INSTANTIATE_TEST_SUITE_P(
    Exactness, ResumedFamily,
    ::testing::Values(Variation{"TopK",
                                {"comm.push_codec.top_k.density=0.1",
                                 "comm.push_codec.min_elements=0", "comm.push_codec.warmup_steps=0",
                                 kTcp, "comm.segment_elements=4096", "comm.credit_bytes=32768"}},
                      Variation{"OneBitInt8Pulls",
                                {"comm.push_codec.one_bit={}", "comm.push_codec.vectors=true",
                                 "comm.push_codec.warmup_steps=5", "comm.pull_format=INT8"}}),
    NameOf);

// Other jobs, each on many processes and on the fewest.
using FewOrMany = ExactnessTest;
TEST_P(FewOrMany, ProcessesHaveTheSameBits) {
  const Result many = RunOf("many", GetParam().settings);
  ASSERT_FALSE(HasFailure());
  const Result few =
      RunOf("few", GetParam().settings + Texts{"cluster.workers=1", "cluster.servers=1"});
  ASSERT_FALSE(HasFailure());
  ExpectSame(many, few);
}

INSTANTIATE_TEST_SUITE_P(
    Exactness, FewOrMany,
    ::testing::Values(Variation{"ClippingByBlock", {"optimizer.clip=PER_BLOCK"}},
                      Variation{"WithoutClipping", {"optimizer.clip=OFF"}},
                      // Virtual workers 0 and 1, 2, 3.
                      Variation{"UnevenWorkers",
                                {"cluster.workers=3", "cluster.virtual_workers=4"}},
                      Variation{"AccumulatingUntied",
                                {"train.global_batch=12", "train.micro_batch=2",
                                 "model.tied_head=false", "data.tokenizer=CHARACTER"}}),
    NameOf);

}  // namespace
}  // namespace tug
