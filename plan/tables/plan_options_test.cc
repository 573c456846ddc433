// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlanInputs Shape() {
  PlanInputs plan;
  plan.layers = 12;
  plan.width = 768;
  plan.heads = 12;
  return plan;
}

PlanInputs Resolved(PlanInputs plan) {
  const absl::Status status = ResolvePlan(plan);
  EXPECT_TRUE(status.ok()) << status.message();
  return plan;
}

// Error of a valid plan after `change`; must be one line.
std::string ErrorOf(PlanInputs plan, void (*change)(PlanInputs&)) {
  change(plan);
  const absl::Status status = ResolvePlan(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(ResolvePlan, FillsInAClusterForAShape) {
  const PlanInputs plan = Resolved(Shape());
  EXPECT_EQ(plan.parameters, static_cast<double>(DecoderParameters(*plan.shape)));
  EXPECT_EQ(plan.data_parallel(), 64u);
  EXPECT_THAT(plan.servers, ElementsAre(1, 8, 64));
  EXPECT_DOUBLE_EQ(plan.achieved_flops(), 160e12);
  EXPECT_DOUBLE_EQ(plan.link_cost().beta, 8 / 400e9);
  EXPECT_EQ(plan.batch_tokens, 64 * 2048);
  EXPECT_EQ(plan.micro_batches(), 1u);
  EXPECT_EQ(plan.pushes(), 1u);
}

TEST(ResolvePlan, DealsGpusToTensorPipelineAndData) {
  PlanInputs options = Shape();
  options.gpus = 48;
  options.tensor = 4;
  options.pipeline = 3;
  options.batch_tokens = 18 * 2048;
  options.micro_batch = 2;
  const PlanInputs plan = Resolved(options);
  EXPECT_EQ(plan.data_parallel(), 4u);
  EXPECT_THAT(plan.servers, ElementsAre(1, 4));
  EXPECT_DOUBLE_EQ(plan.local_parameters() * 12, plan.parameters);
  // 4.5 sequences per worker with 4 workers, two at a time.
  EXPECT_EQ(plan.micro_batches(), 3u);
}

TEST(ResolvePlan, TakesACountForAShapeThatHasAboutAsMany) {
  PlanInputs plan = Shape();
  plan.parameters = 120e6;
  EXPECT_EQ(Resolved(plan).parameters, 120e6);
}

TEST(PlanInputs, TensorParallelismBeyondAHostUsesTheLinkBetweenHosts) {
  PlanInputs plan = Shape();
  plan.heads = 16;
  plan.tensor = 8;
  EXPECT_DOUBLE_EQ(Resolved(plan).tensor_link_cost().beta, 8 / 2400e9);
  plan.tensor = 16;
  EXPECT_DOUBLE_EQ(Resolved(plan).tensor_link_cost().beta, 8 / 400e9);
}

// 3 virtual workers of 4 sequences on 2 workers: the busier worker runs two.
TEST(PlanInputs, AJobsBusiestWorkerHasTheMostVirtualWorkers) {
  PlanInputs plan = Shape();
  plan.is_job = true;
  plan.gpus = 2;
  plan.virtual_workers = 3;
  plan.batch_tokens = 12 * 2048;
  plan.micro_batch = 3;
  plan = Resolved(plan);
  EXPECT_EQ(plan.pushes(), 2u);
  EXPECT_EQ(plan.micro_batches(), 4u);
}

TEST(ResolvePlan, NamesOptionsThatDoNotFitTogether) {
  const auto error = [](void (*change)(PlanInputs&)) { return ErrorOf(Shape(), change); };
  EXPECT_THAT(error([](PlanInputs& o) { o.heads = 0; }), HasSubstr("--heads: give all three"));
  EXPECT_THAT(error([](PlanInputs& o) { o.heads = 7; }), HasSubstr("a divisor of --width 768"));
  EXPECT_THAT(
      error([](PlanInputs& o) { o.parameters = 175e9; }),
      HasSubstr("--parameters 1.75e+11 differs too much from the 1.252e+08 of --layers 12"));
  EXPECT_THAT(error([](PlanInputs& o) { o.tensor = 8; }),
              HasSubstr("--tensor 8 must be a divisor of the 12 heads"));
  EXPECT_THAT(error([](PlanInputs& o) { o.pipeline = 5; }),
              HasSubstr("--pipeline 5 must be a divisor of the 12 layers"));
  EXPECT_THAT(error([](PlanInputs& o) { o.tensor = 3; }),
              HasSubstr("--gpus 64 must be a multiple of --tensor x --pipeline = 3"));
  EXPECT_THAT(error([](PlanInputs& o) { o.batch_tokens = 4096; }),
              AllOf(HasSubstr("--batch-tokens 4096 must be at least 131072"), HasSubstr("--gpus")));
  EXPECT_THAT(error([](PlanInputs& o) {
                o.batch_tokens = 131072;
                o.micro_batch = 2;
              }),
              HasSubstr("--micro-batch 2 must be at most 1, a worker's share"));
  EXPECT_THAT(ErrorOf({}, [](PlanInputs&) {}), HasSubstr("--preset gpt3"));
}

}  // namespace
}  // namespace tug
