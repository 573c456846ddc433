#include "cli/plan_options.h"

#include <cmath>
#include <limits>

#include "cli/plan_presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

PlanOptions Shape() {
  PlanOptions options;
  options.layers = 12;
  options.width = 768;
  options.heads = 12;
  return options;
}

// Of `options` changed, which then are refused in one line.
std::string ErrorOf(PlanOptions options, void (*change)(PlanOptions&)) {
  change(options);
  const absl::StatusOr<PlanInputs> plan = ResolvePlan(options);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(plan.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(ResolvePlan, FillsInAClusterForAShape) {
  const PlanInputs plan = ResolvePlan(Shape()).value();
  EXPECT_EQ(plan.parameters, static_cast<double>(DecoderParameters(*plan.shape)));
  EXPECT_EQ(plan.gpus, 64u);
  EXPECT_EQ(plan.data_parallel(), 64u);
  EXPECT_THAT(plan.servers, ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_DOUBLE_EQ(plan.achieved_flops(), 160e12);
  EXPECT_DOUBLE_EQ(plan.link.beta, 8 / 400e9);
  EXPECT_EQ(plan.batch_tokens, 64 * 2048);
  EXPECT_EQ(plan.micro_batches(), 1u);
}

TEST(ResolvePlan, DealsGpusToTensorPipelineAndData) {
  PlanOptions options = Shape();
  options.gpus = 48;
  options.tensor = 4;
  options.pipeline = 3;
  options.batch_tokens = 18 * 2048;
  options.micro_batch = 2;
  const PlanInputs plan = ResolvePlan(options).value();
  EXPECT_EQ(plan.data_parallel(), 4u);
  EXPECT_THAT(plan.servers, ElementsAre(1, 2, 4));
  EXPECT_DOUBLE_EQ(plan.local_parameters() * 12, plan.parameters);
  // 4.5 sequences for each of 4 workers, two at a time.
  EXPECT_EQ(plan.micro_batches(), 3u);
}

TEST(ResolvePlan, TakesAllPresets) {
  for (const PlanPreset& preset : PlanPresets()) {
    EXPECT_TRUE(ResolvePlan(preset.options).ok()) << preset.name;
    EXPECT_FALSE(preset.lectures.empty()) << preset.name;
  }
}

TEST(ResolvePlan, NamesTheOptionThatMakesNoSense) {
  const auto error = [](void (*change)(PlanOptions&)) { return ErrorOf(Shape(), change); };
  EXPECT_THAT(error([](PlanOptions& o) { o.parameters = 0; }), HasSubstr("--parameters 0: from 1"));
  EXPECT_THAT(error([](PlanOptions& o) { o.parameters = kNan; }), HasSubstr("--parameters nan"));
  EXPECT_THAT(error([](PlanOptions& o) { o.days = -3; }), HasSubstr("--days -3"));
  EXPECT_THAT(error([](PlanOptions& o) { o.days = INFINITY; }), HasSubstr("--days inf"));
  EXPECT_THAT(error([](PlanOptions& o) { o.tokens = 0; }), HasSubstr("--tokens 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.utilization = 51; }),
              HasSubstr("--utilization 51: from 1e-06 to 1"));
  EXPECT_THAT(error([](PlanOptions& o) { o.tflops = 0; }), HasSubstr("--tflops 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.memory_gb = 0; }), HasSubstr("--memory-gb 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.gpus = 0; }), HasSubstr("--gpus 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.layers = 0; }), HasSubstr("--layers 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.latency_us = -1; }), HasSubstr("--latency-us -1"));
  EXPECT_THAT(error([](PlanOptions& o) { o.micro_batch = 0; }), HasSubstr("--micro-batch 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.buffers_gb = -1; }), HasSubstr("--buffers-gb -1"));
  EXPECT_THAT(error([](PlanOptions& o) { o.servers = {4, 0}; }), HasSubstr("--servers 0"));
  EXPECT_THAT(error([](PlanOptions& o) { o.link = "fast"; }),
              AllOf(HasSubstr("--link fast"), HasSubstr("400gbit")));
  EXPECT_THAT(error([](PlanOptions& o) { o.host_link = "0gbit"; }), HasSubstr("--host-link 0gbit"));
  EXPECT_THAT(error([](PlanOptions& o) { o.precision = "fp8"; }), HasSubstr("mixed or fp32"));
  EXPECT_THAT(error([](PlanOptions& o) { o.recompute = "some"; }), HasSubstr("selective or full"));
}

TEST(ResolvePlan, NamesOptionsThatDoNotFitTogether) {
  const auto error = [](void (*change)(PlanOptions&)) { return ErrorOf(Shape(), change); };
  EXPECT_THAT(error([](PlanOptions& o) { o.heads.reset(); }), HasSubstr("--heads: give all three"));
  EXPECT_THAT(error([](PlanOptions& o) { o.heads = 7; }), HasSubstr("a divisor of --width 768"));
  EXPECT_THAT(error([](PlanOptions& o) { o.tensor = 8; }),
              HasSubstr("--tensor 8: a divisor of the 12 heads"));
  EXPECT_THAT(error([](PlanOptions& o) { o.pipeline = 5; }),
              HasSubstr("--pipeline 5: a divisor of the 12 layers"));
  EXPECT_THAT(error([](PlanOptions& o) { o.tensor = 3; }),
              HasSubstr("--gpus 64: a multiple of --tensor x --pipeline = 3"));
  EXPECT_THAT(error([](PlanOptions& o) { o.batch_tokens = 4096; }),
              AllOf(HasSubstr("--batch-tokens 4096: at least 131072"), HasSubstr("--gpus")));
  EXPECT_THAT(ErrorOf({}, [](PlanOptions&) {}), HasSubstr("--preset gpt3"));
}

TEST(Overlay, KeepsWhatIsSaidAndFillsInTheRest) {
  PlanOptions above, below;
  above.gpus = 8;
  below.gpus = 16;
  below.tokens = 1e9;
  const PlanOptions all = Overlay(above, below);
  EXPECT_EQ(all.gpus, 8u);
  EXPECT_EQ(all.tokens, 1e9);
}

}  // namespace
}  // namespace tug
