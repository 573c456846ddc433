// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_job.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  // data.path does not exist: the text is not read.
  absl::StatusOr<PlanJob> Read(const std::string& job, const std::vector<std::string>& overrides,
                               std::optional<uint32_t> vocabulary = std::nullopt) {
    std::ofstream(path_) << job;
    return ReadPlanJob(path_, overrides, {}, vocabulary);
  }
  static double Bytes(const PlanJob& job, size_t row) {
    return job.memory.rows[row][1].get<double>();
  }

  const std::string path_ =
      (std::filesystem::path(::testing::TempDir()) / "plan_job_test.textproto").string();
};

TEST_F(ReadPlanJobTest, TakesModelClusterAndBatch) {
  const PlanJob job = Read(kModel, {"train.precision=BF16", "train.recompute=UNIFORM"}).value();
  const PlanInputs& plan = job.inputs;
  EXPECT_EQ(plan.parameters, static_cast<double>(DecoderParameters(*plan.shape)));
  EXPECT_EQ(plan.gpus, 2u);
  EXPECT_THAT(plan.servers, ElementsAre(4));
  EXPECT_EQ(plan.batch_tokens, 8 * 256);
  EXPECT_EQ(plan.micro_batches(), 4u);
  EXPECT_EQ(plan.recomputation(), Recomputation::kFull);
  EXPECT_EQ(plan.pushes(), 2u);
  // BF16 pulls weights as bf16; gradients are FP32.
  EXPECT_EQ(plan.push_bytes, 4);
  EXPECT_EQ(plan.pull_bytes, 2);
  EXPECT_EQ(plan.states.All(), 2 + 4 + 12);
}

TEST_F(ReadPlanJobTest, CountsTheJobsFormatsAndOptimizer) {
  const PlanInputs int8 = Read(kModel, {"comm.pull_format=INT8"}).value().inputs;
  EXPECT_EQ(int8.pull_bytes, 1 + 4.0 / 256);
  EXPECT_EQ(int8.states.All(), 16);
  const PlanInputs sgd = Read(kModel, {"optimizer.algorithm=SGD"}).value().inputs;
  EXPECT_EQ(sgd.states.second_moment, 0);
}

// 20 bytes per parameter: weights, m, v, weights for pulls, sums (server/segments/memory.h).
TEST_F(ReadPlanJobTest, ServersHoldWhatTheyPredict) {
  const PlanJob one = Read(kModel, {"cluster.servers=1", "comm.credit_bytes=4194304"}).value();
  const double formula = 20 * one.inputs.parameters;
  const double buffers = (64 << 20) + 2.0 * 4194304;
  EXPECT_EQ(Bytes(one, 2), formula + buffers);
  const PlanJob four = Read(kModel, {"comm.credit_bytes=4194304"}).value();
  EXPECT_NEAR(Bytes(four, 2) - buffers, formula / 4, 0.02 * formula / 4);
}

// One host per server: each caches three quarters of the weights, and of the previous version, in
// addition to the quarter that it owns.
TEST_F(ReadPlanJobTest, ServersHoldWhatTheyKeepForTheirHosts) {
  const PlanJob without = Read(kModel, {"comm.pull_credit_bytes=4194304"}).value();
  const PlanJob cached =
      Read(kModel, {"comm.pull_credit_bytes=4194304", "placement.host_weight_cache=true"}).value();
  const double parameters = cached.inputs.parameters;
  EXPECT_NEAR(Bytes(cached, 2) - Bytes(without, 2), 2 * 4 * 0.75 * parameters + 4194304,
              0.1 * parameters);
  EXPECT_THAT(cached.memory.notes.back(), HasSubstr("its own host"));
  const PlanJob lanes =
      Read(kModel, {"comm.pull_credit_bytes=4194304", "cluster.lanes_per_server=2",
                    "placement.host_weight_cache=true"})
          .value();
  EXPECT_NEAR(Bytes(lanes, 2), Bytes(cached, 2), 0.1 * parameters);
}

TEST_F(ReadPlanJobTest, WorkersHoldWeightsAndAGradientForEachVirtualWorker) {
  const PlanJob two = Read(kModel, {}).value();
  const PlanJob one = Read(kModel, {"cluster.virtual_workers=2"}).value();
  EXPECT_EQ(Bytes(two, 0) - Bytes(one, 0), 4 * one.inputs.parameters);
  EXPECT_GT(Bytes(one, 0), 8 * one.inputs.parameters + Bytes(one, 1));
}

TEST_F(ReadPlanJobTest, SaysWhyAModelHasNoShape) {
  const PlanInputs pair =
      Read(kModel, {"model.family=ENCODER_DECODER", "data.path=lines.txt"}).value().inputs;
  EXPECT_FALSE(pair.shape.has_value());
  EXPECT_THAT(pair.no_shape, HasSubstr("one stack"));
  EXPECT_GT(pair.parameters, 124e6);
  const PlanInputs narrow = Read(kModel, {"model.mlp_width=1536"}).value().inputs;
  EXPECT_FALSE(narrow.shape.has_value());
  EXPECT_THAT(narrow.no_shape, HasSubstr("model.mlp_width"));
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
