#include "experiment/exchange_text.h"

#include <string>
#include <vector>

#include "experiment/exchange_sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExchangeText, FindingsNameTheFastestAndTheSlowestAndWhoHoldsLeast) {
  const std::vector<std::string> findings = Findings(SampleExchangeResults());
  ASSERT_EQ(findings.size(), 5u);
  EXPECT_THAT(findings[2],
              AllOf(HasSubstr("link 200mbit, 4 MB: the fastest, halving_doubling takes"),
                    HasSubstr("the slowest, servers:1"), HasSubstr("alpha-beta")));
  EXPECT_THAT(findings[4], AllOf(HasSubstr("least with zero3"), HasSubstr("most with ring")));
}

TEST(ExchangeText, AJobThatFailedIsALineOfEveryTable) {
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

TEST(ExchangeText, JsonHasEveryStepLinkAndNode) {
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

TEST(ExchangeText, AreTablesAndFindingsOfNothing) {
  EXPECT_EQ(StepTable({}).size(), 1u);
  EXPECT_TRUE(Findings({}).empty());
  EXPECT_FALSE(ResultsMarkdown({}).empty());
}

}  // namespace
}  // namespace tug
