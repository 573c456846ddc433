#include "experiment/compression_results.h"

#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CodecCase Codec(const std::string& text) {
  const auto codec = ParseCodecCase(text);
  EXPECT_TRUE(codec.ok()) << codec.status();
  return codec.value_or(CodecCase{});
}

// Two steps of warm-up, ten times as long, then four of which one took longer.
LinkRun OnLink(const std::string& codec, const std::string& link, double seconds, uint64_t pushed) {
  LinkRun run{.codec = Codec(codec), .link = link, .servers = 2, .warm_up = 2};
  for (uint64_t step = 1; step <= 6; ++step) {
    const uint64_t times = step <= 2 ? 10 : 1;
    run.figures.steps.push_back(
        {.step = step,
         .step_seconds = seconds * static_cast<double>(times) * (step == 5 ? 3 : 1),
         .wait_seconds = seconds / 4,
         .pushed_bytes = pushed,
         .pulled_bytes = 1000});
  }
  run.figures.workers = {{.virtual_worker = 0}, {.virtual_worker = 1}};
  return run;
}

LearningRun Trained(const std::string& codec, double rate, double final_loss) {
  LearningRun run{.codec = Codec(codec), .learning_rate = rate};
  for (uint64_t step = 1; step <= 3; ++step) {
    run.figures.steps.push_back({.step = step,
                                 .seconds = static_cast<double>(step),
                                 .loss = 2,
                                 .pushed_bytes = 500,
                                 .pulled_bytes = 100});
  }
  run.figures.evals = {{3, 3, final_loss, true}};
  return run;
}

CompressionResults Example() {
  CompressionResults results{.command = "tug", .loss_margin = 0.03};
  results.codecs = {Codec("fp32"), Codec("int8/int8"), Codec("top_k:0.01-ef")};
  results.link_names = {"none", "100mbit"};
  results.links = {
      OnLink("fp32", "none", 0.02, 1000),         OnLink("int8/int8", "none", 0.0195, 260),
      OnLink("top_k:0.01-ef", "none", 0.025, 20), OnLink("fp32", "100mbit", 0.2, 1000),
      OnLink("int8/int8", "100mbit", 0.05, 260),  OnLink("top_k:0.01-ef", "100mbit", 0.04, 20)};
  results.learning = {Trained("fp32", 1e-3, 1.5), Trained("fp32", 2e-3, 1.4),
                      Trained("int8/int8", 1e-3, 1.42), Trained("int8/int8", 2e-3, 1.7),
                      Trained("top_k:0.01-ef", 1e-3, 1.9)};
  return results;
}

TEST(CompressionResults, StepsAreMeasuredAfterTheWarmUp) {
  LinkRun run = OnLink("int8", "none", 0.02, 100);
  EXPECT_DOUBLE_EQ(run.StepSeconds(), 0.02) << "the median: one step took longer";
  EXPECT_DOUBLE_EQ(run.WaitSeconds(), 0.005);
  EXPECT_DOUBLE_EQ(run.PushedBytes(), 100);
  EXPECT_DOUBLE_EQ(run.PulledBytes(), 1000);
  EXPECT_FALSE(run.EncodeSeconds().has_value()) << "not measured";
  EXPECT_FALSE(run.WorkerSocketBytes().has_value()) << "shared memory";
  run.figures.encode_seconds = 2.4;
  run.figures.decode_seconds = 1.2;
  run.figures.server_socket_bytes = 600;
  EXPECT_DOUBLE_EQ(*run.EncodeSeconds(), 0.2) << "6 steps of 2 workers";
  EXPECT_DOUBLE_EQ(*run.DecodeSeconds(), 0.1) << "6 steps of 2 servers";
  EXPECT_DOUBLE_EQ(*run.ServerSocketBytes(), 100);
  run.figures.steps.resize(2);
  EXPECT_DOUBLE_EQ(run.StepSeconds(), 0.2) << "the warm-up, where there is nothing else";
  run.figures.steps.clear();
  EXPECT_TRUE(std::isnan(run.StepSeconds()));
}

TEST(CompressionResults, ACodecPaysWhereItsStepsAreShorter) {
  const CompressionResults results = Example();
  const auto verdict = [&](const char* codec, const char* link) {
    return results.VerdictOf(*results.Find(Codec(codec), link));
  };
  EXPECT_TRUE(verdict("int8/int8", "100mbit")->pays());
  EXPECT_DOUBLE_EQ(verdict("top_k:0.01-ef", "100mbit")->SpeedUp(), 5);
  EXPECT_FALSE(verdict("top_k:0.01-ef", "none")->pays());
  EXPECT_FALSE(verdict("int8/int8", "none")->pays()) << "2.5% are as good as nothing";
  EXPECT_FALSE(verdict("fp32", "none").has_value());
}

TEST(CompressionResults, TheBestLearningRateCounts) {
  CompressionResults results = Example();
  EXPECT_EQ(results.BestFp32()->learning_rate, 2e-3);
  EXPECT_NEAR(*results.LossOverFp32(Codec("int8/int8")), 0.02, 1e-12);
  EXPECT_TRUE(*results.LearnsAsWell(Codec("int8/int8")));
  EXPECT_FALSE(*results.LearnsAsWell(Codec("top_k:0.01-ef")));
  EXPECT_FALSE(results.LearnsAsWell(Codec("fp32")).has_value());
  EXPECT_FALSE(results.LearnsAsWell(Codec("bf16")).has_value()) << "not run";
  results.loss_margin = 0.6;
  EXPECT_TRUE(*results.LearnsAsWell(Codec("top_k:0.01-ef")));
  results.learning[4].figures.evals[0].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(*results.LearnsAsWell(Codec("top_k:0.01-ef"))) << "it has diverged";
  EXPECT_THAT(ResultsMarkdown(results), AllOf(HasSubstr("not as well "), Not(HasSubstr("nan"))));
}

TEST(CompressionResults, FindingsStateBothNumbers) {
  EXPECT_THAT(
      Findings(Example()),
      ElementsAre(
          "int8/int8: on link none it does not pay: a step takes 19.5 ms, fp32's 20.0 ms "
          "(1.03x); on link 100mbit it pays: a step takes 50.0 ms, fp32's 200.0 ms (4.00x); "
          "learns as well: final validation loss 1.4200, fp32's 1.4000 (+0.0200, margin "
          "0.03)",
          "top_k:0.01-ef: on link none it does not pay: a step takes 25.0 ms, fp32's 20.0 "
          "ms (0.80x); on link 100mbit it pays: a step takes 40.0 ms, fp32's 200.0 ms "
          "(5.00x); does not learn as well: final validation loss 1.9000, fp32's 1.4000 "
          "(+0.5000, margin 0.03)"));
}

TEST(CompressionResults, TablesHaveALineForEachRun) {
  const CompressionResults results = Example();
  const auto verdicts = VerdictTable(results);
  ASSERT_EQ(verdicts.size(), 4u);
  EXPECT_THAT(verdicts[0], ElementsAre("codec", "link none", "link 100mbit", "learning"));
  EXPECT_THAT(verdicts[1], ElementsAre("fp32", "20.0 ms", "200.0 ms", "1.4000"));
  EXPECT_THAT(verdicts[3], ElementsAre("top_k:0.01-ef", "does not, 0.80x", "pays, 5.00x",
                                       "not as well, +0.5000"));
  for (const auto& table : {verdicts, LinkTable(results), LearningTable(results)}) {
    for (const auto& line : table) EXPECT_EQ(line.size(), table[0].size());
  }
  EXPECT_THAT(LinkTable(results)[6], Contains("2.00%"));
  EXPECT_EQ(LearningTable(results).size(), 6u);
}

TEST(CompressionResults, JsonHasEveryRunAndStep) {
  const auto json = ResultsJson(Example());
  ASSERT_EQ(json["links"].size(), 6u);
  EXPECT_EQ(json["links"][5]["pays"], true);
  EXPECT_EQ(json["links"][5]["fp32_step_seconds"], 0.2);
  EXPECT_TRUE(json["links"][0]["pays"].is_null());
  EXPECT_TRUE(json["links"][0]["encode_seconds"].is_null());
  EXPECT_EQ(json["links"][5]["steps"].size(), 6u);
  ASSERT_EQ(json["learning"].size(), 5u);
  EXPECT_EQ(json["learning"][2]["learns_as_well"], true);
  EXPECT_EQ(json["learning"][3]["counts"], false);
  EXPECT_EQ(json["learning"][4]["pushed_bytes"], 1500);
  EXPECT_EQ(json["learning"][4]["evaluations"][0]["loss"], 1.9);
}

TEST(CompressionResults, AreTextBeforeAnythingIsMeasured) {
  CompressionResults results = Example();
  results.links.clear();
  results.learning.clear();
  EXPECT_TRUE(Findings(results).empty());
  EXPECT_THAT(ResultsMarkdown(results), AllOf(HasSubstr("int8/int8"), Not(HasSubstr("On links"))));
}

}  // namespace
}  // namespace tug
