#include "experiment/exchange_results.h"

#include <cmath>
#include <string>

#include "experiment/exchange_sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExchangeCase Case(const std::string& text) { return ParseExchangeCase(text).value(); }

const ExchangeRun& Found(const ExchangeResults& results, const std::string& text,
                         const std::string& link = "200mbit", double size = 4e6) {
  return *results.Find(Case(text), link, size);
}

TEST(ExchangeResults, StepsAreThoseAfterTheWarmUp) {
  const ExchangeResults results = SampleExchangeResults();
  const ExchangeRun& run = Found(results, "ring");
  const double seconds = results.CostOf(run)->seconds * 1.1;
  EXPECT_NEAR(run.StepSeconds(), seconds, 1e-9);
  EXPECT_NEAR(run.LeastStepSeconds(), seconds, 1e-9);
  EXPECT_NEAR(run.MostStepSeconds(), seconds * 1.5, 1e-9);
  EXPECT_NEAR(run.WaitSeconds(), seconds * 0.9, 1e-9);
}

TEST(ExchangeResults, BytesOfALinkAreOfAStepAndOfItsBusierDirection) {
  ExchangeResults results = SampleExchangeResults();
  ExchangeRun run = Found(results, "servers:1");
  EXPECT_NEAR(*run.HostSentBytes(0), 4 * 4e6 * 1.05, 1) << "the server is on the first host";
  EXPECT_NEAR(*run.HostSentBytes(1), 4e6 * 1.05, 1);
  EXPECT_NEAR(*run.BusiestBytes(), 16e6 * 1.05, 1);
  run.hosts[2].received_bytes = 10 * 17'000'000;
  EXPECT_DOUBLE_EQ(*run.BusiestBytes(), 17e6);
  EXPECT_FALSE(run.HostSentBytes(5).has_value());
  EXPECT_FALSE(Found(results, "servers:1", "none").BusiestBytes().has_value());
}

TEST(ExchangeResults, AModelOfAJobIsAsBigAsWhatAWorkerPushes) {
  ExchangeRun run = Found(SampleExchangeResults(), "ring");
  run.planned_bytes = 0;
  for (StepPoint& point : run.figures.steps) point.pushed_bytes = 4 * 5000;
  EXPECT_DOUBLE_EQ(run.ModelBytes(), 5000);
  run.figures = {};
  EXPECT_TRUE(std::isnan(run.ModelBytes()));
}

TEST(ExchangeResults, HeldIsOfTheNodeThatHoldsMost) {
  ExchangeRun run = Found(SampleExchangeResults(), "zero1");
  EXPECT_EQ(run.WorkerHeld()->total(), 8e6);
  EXPECT_EQ(run.ServerHeld()->total(), 4e6);
  run.figures.nodes[2].held.sums += 5;
  EXPECT_EQ(run.ServerHeld()->total(), 4e6 + 5);
  run.figures.nodes.clear();
  EXPECT_FALSE(run.WorkerHeld().has_value());
}

TEST(ExchangeResults, NothingIsPredictedWithoutALink) {
  const ExchangeResults results = SampleExchangeResults();
  EXPECT_FALSE(results.CostOf("none").has_value());
  EXPECT_FALSE(results.CostOf(Found(results, "ring", "none")).has_value());
  EXPECT_NEAR(1 / results.CostOf("200mbit")->beta, 25e6 * 1448 / 1514, 1);
}

TEST(ExchangeResults, FindingsNameTheFastestAndTheSlowestAndWhoHoldsLeast) {
  const std::vector<std::string> findings = Findings(SampleExchangeResults());
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_THAT(findings[2],
              AllOf(HasSubstr("link 200mbit, 4 MB: the fastest, halving_doubling takes"),
                    HasSubstr("the slowest, servers:1"), HasSubstr("alpha-beta")));
  EXPECT_THAT(findings[4], AllOf(HasSubstr("least with zero3"), HasSubstr("most with ring")));
}

TEST(ExchangeResults, AJobThatFailedIsALineOfEveryTable) {
  const ExchangeResults results = SampleExchangeResults();
  EXPECT_THAT(Failures(results), ElementsAre("zero2, link 200mbit, 16 MB: worker-1: said <no>"));
  EXPECT_EQ(results.Fastest("200mbit", 16e6)->exchange.name, "halving_doubling");
  const auto steps = StepTable(results);
  ASSERT_EQ(steps.size(), 1 + results.cases.size());
  for (const auto& line : steps) ASSERT_EQ(line.size(), 5u);
  EXPECT_EQ(steps[10][0], "zero2");
  EXPECT_EQ(steps[10][4], "failed");
  const auto runs = RunTable(results);
  ASSERT_EQ(runs.size(), 1 + results.runs.size());
  for (const auto& line : runs) ASSERT_EQ(line.size(), runs[0].size());
  for (const auto& line : MemoryTable(results)) EXPECT_EQ(line.size(), 12u);
  EXPECT_THAT(ResultsMarkdown(results),
              AllOf(HasSubstr("- failed: zero2"), HasSubstr("## Memory"), HasSubstr("| mixed:1 ")));
}

TEST(ExchangeResults, JsonHasEveryStepLinkAndNode) {
  const ExchangeResults results = SampleExchangeResults();
  const nlohmann::ordered_json json = ResultsJson(results);
  ASSERT_EQ(json["runs"].size(), results.runs.size());
  const auto& none = json["runs"][0];
  EXPECT_TRUE(none["alpha_beta"].is_null());
  EXPECT_TRUE(none["busiest_bytes"].is_null());
  EXPECT_TRUE(none["error"].is_null());
  const auto& run = json["runs"][22];  // servers:1 on 200mbit
  EXPECT_EQ(run["steps"].size(), 10u);
  EXPECT_EQ(run["links"].size(), 5u);
  EXPECT_EQ(run["links"][0]["server_alone"], true);
  EXPECT_EQ(run["nodes"].size(), 5u);
  EXPECT_EQ(run["nodes"][0]["role"], "server");
  EXPECT_GT(run["alpha_beta"]["step_seconds"].get<double>(), 1);
  EXPECT_EQ(json["failures"].size(), 1u);
}

TEST(ExchangeResults, AreTablesAndFindingsOfNothing) {
  EXPECT_EQ(StepTable({}).size(), 1u);
  EXPECT_TRUE(Findings({}).empty());
  EXPECT_FALSE(ResultsMarkdown({}).empty());
}

}  // namespace
}  // namespace tug
