// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_section.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"
#include "lab/experiment/experiment_report.h"
#include "lab/experiment/sections/exchange_charts.h"
#include "lab/experiment/sections/exchange_points.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = R"(
name: "ways"
question: "Which?"
job {
  compute: REPLAY
  replay { profile: "vgg16" }
  cluster { workers: 4 }
  train { steps: 10 }
  optimizer { clip: OFF }
}
axes {
  name: "case"
  value { label: "servers:1" set: "cluster.servers=1" }
  value { label: "mixed:1" set: "placement.kind=MIXED" set: "cluster.servers=5" }
  value { label: "ring" set: "exchange=ALL_REDUCE" set: "collective.algorithm=RING" }
  value { label: "tree" set: "exchange=ALL_REDUCE" set: "collective.algorithm=BINARY_TREE" }
  value { label: "zero3" set: "placement.kind=ZERO3" }
}
axes { field: "replay.size_scale" values: ["1", "4"] }
axes { field: "place.testbed.link" values: ["none", "200mbit"] }
sections: EXCHANGE
)";
constexpr LinkCost kLink = {.alpha = 1e-4, .beta = 1 / (25e6 * 1448 / 1514), .gamma = 0};
constexpr double kBytes = 4e6;

ExperimentResults Planned(const std::string& text = kFile) {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = text, .name = "a", .repeats = 3});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (plan.ok()) results.plan = *std::move(plan);
  results.courses.resize(results.plan.cases.size());
  return results;
}

// Models of 4 and 16 MB. Steps take a tenth longer than one phase after the other, and a
// millisecond more in each repeat; links carry 5% more bytes than the formula.
void TakeRuns(ExperimentResults& results, size_t number) {
  const PlannedCase& one = results.plan.cases[number];
  const ExchangeCase exchange = ExchangeCaseOf(one.config).value_or(ExchangeCase{});
  const bool has_link = one.place.testbed().link() != "none";
  const double bytes = kBytes * one.config.replay().size_scale();
  const ExchangeCost cost = CostOfExchange(exchange, 4, bytes, kLink);
  for (uint32_t repeat = 0; repeat < 3; ++repeat) {
    ExperimentRow row{.case_name = one.name, .repeat = repeat};
    row.measures["step_time"] = (has_link ? cost.seconds * 1.1e3 : bytes * 1e-6) + repeat;
    row.measures["pushed_bytes"] = 4 * bytes * 1e-6;
    if (has_link) row.measures["one_way_bytes"] = cost.BusiestBytes() * 1.05e-6;
    for (uint32_t host = 0; has_link && host < exchange.Hosts(4); ++host) {
      const HostBytes& of = exchange.HasServerAlone(host, 4) ? cost.server : cost.worker;
      row.links.push_back({static_cast<uint64_t>(of.sends * 10 * 1.05),
                           static_cast<uint64_t>(of.receives * 10 * 1.05)});
    }
    results.rows.push_back(row);
  }
  const auto all = static_cast<uint64_t>(bytes);
  const uint64_t part = exchange.kind == ExchangeKind::kZero3 ? all / 4 : all;
  NodeHeldBytes of_worker{.weights = part, .gradients = part, .predicted = 2 * part};
  NodeHeldBytes of_server{
      .weights = part, .optimizer = 2 * part, .sums = part, .predicted = 4 * part + 1'230'000};
  results.courses[number].figures = RunFigures{
      .nodes = {
          {.name = "server-0", .server = true, .held = of_server},
          {.name = "server-1", .server = true, .held = {.weights = 1}},  // of a server that left
          {.name = "worker-0", .server = false, .held = of_worker}}};
}

ExperimentResults Sample() {
  ExperimentResults results = Planned();
  for (size_t i = 0; i < results.plan.cases.size(); ++i) TakeRuns(results, i);
  return results;
}

const ExchangePoint& Found(const std::vector<ExchangePoint>& points, const std::string& name,
                           const std::string& group) {
  for (const ExchangePoint& point : points) {
    if (point.name == name && point.group == group) return point;
  }
  ADD_FAILURE() << name << ", " << group;
  return points.front();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(ExchangePoints, HaveWhatWasMeasuredBesideTheFormulas) {
  const std::vector<ExchangePoint> points = ExchangePointsOf(Sample());
  ASSERT_EQ(points.size(), 16u) << "there is no formula of the tree";
  const ExchangePoint one = Found(points, "servers:1", "size_scale 1, link 200mbit");
  EXPECT_DOUBLE_EQ(one.model_bytes, kBytes);
  EXPECT_NEAR(1 / one.link_cost->beta, 25e6 * 1448 / 1514, 1);
  EXPECT_DOUBLE_EQ(one.link_cost->alpha, 1e-4);
  EXPECT_NEAR(one.step_ms->median, one.cost->seconds * 1.1e3 + 1, 1e-6);
  EXPECT_NEAR(one.link_mb->median, 16 * 1.05, 1e-9);
  ASSERT_EQ(one.hosts.size(), 5u);
  EXPECT_NEAR(one.hosts[0].sends, 16e6 * 1.05, 1) << "the server is on the first host, in a step";
  EXPECT_NEAR(one.hosts[1].receives, 4e6 * 1.05, 1);
  EXPECT_DOUBLE_EQ(*one.HeldOnHost(), 8e6) << "no server beside a worker";
  EXPECT_DOUBLE_EQ(*Found(points, "zero3", "size_scale 1, link none").HeldOnHost(), 6e6);
  EXPECT_FALSE(Found(points, "ring", "size_scale 4, link none").cost.has_value()) << "no link";
}

TEST(ExchangePoints, HaveNoFormulaOfWhatItDoesNotSay) {
  const auto has = [](const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(kFile, {{from, to}});
    ExperimentResults results = Planned(absl::StrCat(text, "only { where: \"case=servers:1\" }"));
    for (const ExchangePoint& point : ExchangePointsOf(results)) {
      if (point.link_cost.has_value()) return true;
    }
    return false;
  };
  EXPECT_TRUE(has("sections", "sections"));
  EXPECT_FALSE(has("workers: 4", "workers: 4 virtual_workers: 8"));
  EXPECT_FALSE(has("train {", "comm { push_codec { bf16 {} } } train {"));
  EXPECT_FALSE(has("train {", "comm { pull_format: BF16 } train {"));
  EXPECT_FALSE(has("train {", "comm { impair { delay_ms: 1 } } train {"));
  EXPECT_FALSE(has("\"none\", \"200mbit\"", "\"none\""));
  EXPECT_FALSE(has("sections", "set: \"place.testbed.hosts=3\" sections"));
}

TEST(ExchangePoints, TakeAlphaFromTheFile) {
  const auto points = ExchangePointsOf(
      Planned(absl::StrReplaceAll(kFile, {{"sections", "message_us: 7 sections"}})));
  EXPECT_DOUBLE_EQ(Found(points, "ring", "size_scale 1, link 200mbit").link_cost->alpha, 7e-6);
  const auto refused = PlanExperiment({.text = absl::StrCat(kFile, "message_us: -1"), .name = "a"});
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("a:22"), HasSubstr("message_us = -1 is out of range")));
}

TEST(ExchangeSection, IsAWellFormedPartOfThePage) {
  const std::string page = ExperimentReportHtml(Sample());
  ExpectWellFormed(page);
  EXPECT_THAT(page,
              AllOf(HasSubstr("Which way to exchange is fastest?"), HasSubstr("Ways to exchange"),
                    HasSubstr("The alpha-beta model"), HasSubstr("alpha is 100 us"),
                    HasSubstr("Bytes of each host"), HasSubstr("optimizer state"),
                    Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(ExchangeSection, SaysWhatIsFastestAndWhoHoldsLeast) {
  const std::string text = ExperimentReportMarkdown(Sample(), {});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("- size_scale 1, link 200mbit: the fastest, ring takes "),
            HasSubstr("; the slowest, servers:1 takes "), HasSubstr("ms per step (alpha-beta: "),
            HasSubstr("lowest with zero3, 6.00 MB; highest with mixed:1, 24.00 MB"),
            HasSubstr("### Compared with the alpha-beta model"), HasSubstr("### Memory")));
  EXPECT_LT(text.find("Which way"), text.find("## All cases"));
}

TEST(ExchangeSection, TablesHaveTheModelAndTheFormulas) {
  const std::string text = ExchangeSectionMarkdown(Sample());
  EXPECT_EQ(Count(text, "size_scale 1, link 200mbit "), 4u) << text;
  // 16 MB over 23.9 MB/s and back, 8 messages; overlapped once.
  EXPECT_THAT(text, AllOf(HasSubstr("| 1339.1 "), HasSubstr("| 670.0 "), HasSubstr("| 1.10 "),
                          HasSubstr("| 16.80 [16.80, 16.80] ")));
  EXPECT_EQ(Count(text, "\n| zero3"), 1u) << "memory, of the first case with its name";
  EXPECT_THAT(text, HasSubstr("| 5.23 ")) << "the server's formula";
}

TEST(ExchangeSection, DrawsALineAndPointsForEachCaseOnALink) {
  const std::vector<ExchangePoint> points = ExchangePointsOf(Sample());
  const std::string svg = AlphaBetaSvg(points);
  EXPECT_EQ(Count(svg, "<path"), 2 * 2 * 4u) << "over sizes and over workers, overlapped too";
  EXPECT_EQ(Count(svg, "<circle"), 2 * 4u + 4u) << "of both sizes, then of the larger one";
  EXPECT_EQ(Count(HostBytesSvg(points), "MB per step</title>"), 5 + 5 + 4 + 4u) << "hosts, once";
  for (const std::string& picture :
       {svg, StepTimesSvg(points), HostBytesSvg(points), MemorySvg(points)}) {
    ExpectWellFormed(picture);
  }
}

TEST(ExchangeSection, IsWholeAtEveryStage) {
  ExperimentResults results = Planned();
  EXPECT_EQ(ExchangeSectionHtml({}), "");
  ExpectWellFormed(absl::StrCat("<html>", ExchangeSectionHtml(results), "</html>"));
  EXPECT_THAT(ExchangeSectionMarkdown(results), Not(HasSubstr("### Memory")));
  for (size_t i = 0; i < results.plan.cases.size(); ++i) {
    TakeRuns(results, i);
    ExpectWellFormed(ExperimentReportHtml(results));
  }
  for (ExperimentRow& row : results.rows) {  // all of them failed
    row.measures.clear();
    row.links.clear();
    row.error = "<gone>";
  }
  for (CaseCourse& course : results.courses) course.figures.reset();
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Failed runs"), Not(HasSubstr("<h3>Memory")),
                          Not(HasSubstr("Bytes of each host"))));
}

}  // namespace
}  // namespace tug
