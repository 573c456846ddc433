#include "experiment/scheduling_results.h"

#include <fstream>
#include <string>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SchedulingResults Example() {
  SchedulingCase c;
  c.profile = "vgg16";
  c.ratio = 0.5;
  c.blocks = {"a", "b"};
  c.policies = {{.policy = "fifo", .steps = {{1.5, 1.4, 1.9}, {0.5, 0.4, 0.9}, {0.4, 0.5, 0.6}}},
                {.policy = "bytescheduler", .steps = {{1.0}, {0.01}, {0.99}}}};
  c.policies[1].predicted = WorkedOutStep{.seconds = 0.95};
  c.bound = WorkedOutStep{.seconds = 0.8};
  return {.command = "tug", .settings = {{"link", "200mbit"}}, .cases = {c}};
}

TEST(SchedulingResults, DividesByFifoAndByTheBound) {
  const SchedulingCase c = Example().cases[0];
  EXPECT_DOUBLE_EQ(c.SpeedUp(c.policies[1]).value(), 1.5);
  EXPECT_DOUBLE_EQ(c.OverBound(c.policies[1]).value(), 1.25);
  EXPECT_NEAR(SchedulingCase::Deviation(c.policies[1]).value(), -0.05, 1e-9);
  EXPECT_FALSE(SchedulingCase::Deviation(c.policies[0]).has_value());
  SchedulingCase without = c;
  without.policies.erase(without.policies.begin());
  without.bound.reset();
  EXPECT_FALSE(without.SpeedUp(without.policies[0]).has_value());
  EXPECT_FALSE(without.OverBound(without.policies[0]).has_value());
}

TEST(SchedulingResults, HasALineForEachCaseAndPolicy) {
  const auto table = ResultsTable(Example());
  ASSERT_EQ(table.size(), 3u);
  EXPECT_THAT(table[1], ElementsAre("vgg16", "0.5", "fifo", "1500 (1400 to 1900)", "500", "0.50",
                                    "1.00", "800", "1.88", "-", "-"));
  EXPECT_THAT(table[2], ElementsAre("vgg16", "0.5", "bytescheduler", "1000 (1000 to 1000)", "10",
                                    "0.99", "1.50", "800", "1.25", "950", "-5.0%"));
}

TEST(SchedulingResults, MakesATableOfMarkdownWithEqualLines) {
  const std::vector<std::string> lines =
      absl::StrSplit(ResultsMarkdown(Example()), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size());
  EXPECT_THAT(lines[1], HasSubstr("| ------- |"));
  EXPECT_EQ(absl::StrSplit(ResultsMarkdown({}), '\n', absl::SkipEmpty()).begin()->substr(0, 9),
            "| profile");
}

TEST(SchedulingResults, KeepsEveryStepInJson) {
  const auto json = ResultsJson(Example());
  EXPECT_EQ(json["settings"]["link"], "200mbit");
  const auto& policy = json["cases"][0]["policies"][0];
  EXPECT_EQ(policy["steps"]["seconds"].size(), 3u);
  EXPECT_EQ(policy["step_seconds"], 1.5);
  EXPECT_TRUE(policy["predicted"].is_null());
  EXPECT_EQ(json["cases"][0]["bound"]["step_seconds"], 0.8);
  EXPECT_EQ(ResultsJson({})["cases"].size(), 0u);
}

TEST(TunedSchedule, IsWhereItSettledBeforeTheMeasuredStepsAndStayed) {
  const std::string path = testing::TempDir() + "/tuned.jsonl";
  const auto read = [&](const std::string& more) {
    std::ofstream(path)
        << R"({"kind":"trial","step":8,"partition_bytes":1})"
        << "\n"
        << R"({"kind":"settled","step":9,"partition_bytes":32768,"credit_bytes":65536})"
        << "\n"
        << R"({"kind":"step","step":10})"
        << "\n"
        << more;
    return ReadTunedSchedule(path, 10);
  };
  const auto tuned = read("");
  ASSERT_TRUE(tuned.ok() && tuned->has_value()) << tuned.status();
  PolicyResult policy{.policy = "auto", .tuned = *tuned};
  EXPECT_EQ(policy.Label(), "auto (32 KiB, credit 64 KiB)");
  EXPECT_FALSE(ReadTunedSchedule(path, 9)->has_value()) << "it settled later";
  policy.tuned = read(R"({"kind":"trial","step":12})").value();
  EXPECT_EQ(policy.Label(), "auto (not settled)");
  EXPECT_FALSE(read(R"({"kind":"notice","text":"steps take 3 ms: tuning again"})")->has_value());
  EXPECT_EQ(ReadTunedSchedule("/nowhere/m", 1).status().code(), absl::StatusCode::kNotFound);
}

TEST(StepSeries, IsReadFromTheMetricsOfARun) {
  const std::string path = testing::TempDir() + "/metrics.jsonl";
  std::ofstream(path)
      << R"({"kind":"notice","text":"replay"})"
      << "\n"
      << R"({"kind":"step","step":1,"mean_seconds":9.0,"mean_wait_seconds":1,"overlap":0.1})"
      << "\n"
      << R"({"kind":"step","step":2,"mean_seconds":2.0,"mean_wait_seconds":0.5,"overlap":0.2})"
      << "\n"
      << R"({"kind":"step","step":3,"mean_seconds":3.0,"mean_wait_seconds":0.25,"overlap":0.3})"
      << "\n{\"kind\":\"st";
  const auto series = ReadStepSeries(path, 2, 3);
  ASSERT_TRUE(series.ok()) << series.status();
  EXPECT_THAT(series->seconds, ElementsAre(2.0, 3.0));
  EXPECT_THAT(series->exposed_seconds, ElementsAre(0.5, 0.25));
  EXPECT_THAT(series->overlap, ElementsAre(0.2, 0.3));
  EXPECT_THAT(std::string(ReadStepSeries(path, 2, 4).status().message()),
              HasSubstr("2 of 3 steps"));
  EXPECT_EQ(ReadStepSeries("/nowhere/m", 1, 2).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tug
