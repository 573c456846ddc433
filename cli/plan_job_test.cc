#include "cli/plan_job.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/memory_by_stage.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] =
    "name: 'plan' data { path: 'none.txt' } cluster { workers: 2 servers: 4 virtual_workers: 4 } "
    "model { layers: 12 width: 768 heads: 12 context: 256 vocabulary: 50257 } "
    "train { global_batch: 8 micro_batch: 1 } ";

class ReadPlanJobTest : public ::testing::Test {
 protected:
  // The text of data.path is not there: it is not read.
  absl::StatusOr<PlanJob> Read(const std::string& job, const std::vector<std::string>& overrides,
                               std::optional<uint64_t> vocabulary = std::nullopt) {
    std::ofstream(path_) << job;
    return ReadPlanJob(path_, overrides, vocabulary);
  }
  static double Bytes(const PlanJob& job, size_t row) { return job.memory.rows[row][2].value; }

  const std::string path_ =
      (std::filesystem::path(::testing::TempDir()) / "plan_job_test.textproto").string();
};

TEST_F(ReadPlanJobTest, TakesModelClusterAndBatch) {
  const PlanJob job = Read(kModel, {"train.precision=BF16", "train.recompute=UNIFORM"}).value();
  const PlanInputs plan = ResolvePlan(job.options).value();
  EXPECT_EQ(plan.parameters, static_cast<double>(DecoderParameters(*plan.shape)));
  EXPECT_EQ(plan.gpus, 2u);
  EXPECT_THAT(plan.servers, ElementsAre(4));
  EXPECT_EQ(plan.batch_tokens, 8 * 256);
  EXPECT_EQ(plan.micro_batches(), 4u);
  EXPECT_TRUE(plan.mixed);
  EXPECT_EQ(plan.recomputation, Recomputation::kFull);
}

// server/memory.h predicts what plan/memory_by_stage.h says of Tugboat, and buffers.
TEST_F(ReadPlanJobTest, ServersHoldWhatTheFormulaSaysAndBuffers) {
  const PlanJob one = Read(kModel, {"cluster.servers=1", "comm.credit_bytes=4194304"}).value();
  const double formula = kTugboatServerBytes * *one.options.parameters;
  const double buffers = (64 << 20) + 2.0 * 4194304;
  EXPECT_EQ(Bytes(one, 2), formula + buffers);
  const PlanJob four = Read(kModel, {"comm.credit_bytes=4194304"}).value();
  EXPECT_NEAR(Bytes(four, 2) - buffers, formula / 4, 0.02 * formula / 4);
}

TEST_F(ReadPlanJobTest, WorkersHoldWeightsAndAGradientForEachVirtualWorker) {
  const PlanJob two = Read(kModel, {}).value();
  const PlanJob one = Read(kModel, {"cluster.virtual_workers=2"}).value();
  EXPECT_EQ(Bytes(two, 0) - Bytes(one, 0), 4 * *one.options.parameters);
  EXPECT_GT(Bytes(one, 0), kTugboatWorkerBytes * *one.options.parameters + Bytes(one, 1));
}

TEST_F(ReadPlanJobTest, AnEncoderDecoderIsCountedButHasNoShape) {
  const PlanJob job = Read(kModel, {"model.family=ENCODER_DECODER", "data.path=lines.txt"}).value();
  EXPECT_FALSE(job.options.layers.has_value());
  EXPECT_GT(*job.options.parameters, 124e6);
  EXPECT_TRUE(ResolvePlan(job.options).ok());
}

TEST_F(ReadPlanJobTest, AsksForWhatOnlyTheTextKnows) {
  const std::vector<std::string> characters = {"model.vocabulary=0", "data.tokenizer=CHARACTER"};
  EXPECT_THAT(std::string(Read(kModel, characters).status().message()),
              HasSubstr("--vocabulary N"));
  EXPECT_TRUE(Read(kModel, characters, 65).ok());
  EXPECT_THAT(std::string(Read(kModel, {"model.family=ENCODER"}).status().message()),
              HasSubstr("model.classes=N"));
  EXPECT_TRUE(Read(kModel, {"model.family=ENCODER", "model.classes=2"}).ok());
}

TEST_F(ReadPlanJobTest, RefusesJobsWithoutAModel) {
  const std::string replay =
      "name: 'r' compute: REPLAY replay { profile: 'vgg16' } optimizer { clip: OFF }";
  EXPECT_THAT(std::string(Read(replay, {}).status().message()), HasSubstr("--parameters"));
}

}  // namespace
}  // namespace tug
