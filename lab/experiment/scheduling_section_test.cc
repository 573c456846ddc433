// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/scheduling_section.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"
#include "lab/experiment/experiment_report.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Row = TimelineSpan::Row;

constexpr char kFile[] = R"(
name: "orders"
question: "Which?"
job {
  compute: REPLAY
  replay { profile: "vgg16" }
  cluster { servers: 2 workers: 4 virtual_workers: 4 }
  train { steps: 20 }
  optimizer { clip: OFF }
}
place { testbed { link: "200mbit" } }
axes { name: "model" value { label: "a<b" } value { label: "c" } }
axes { name: "order" field: "comm.scheduler" values: ["FIFO", "BYTESCHEDULER", "AUTO"] }
warm_up_steps: 2
repeats: 3
measures: "mean_step_time"
sections: SCHEDULING
)";

// By model, "a<b" and "c": step times of FIFO, BYTESCHEDULER and AUTO. A tenth more in the second
// repeat.
constexpr double kMilliseconds[2][3] = {{200, 100, 125}, {200, 250, 200}};

Timeline SomeTimeline() {
  return {.spans = {{Row::kBackward, 1, 0, 0.1},
                    {Row::kBackward, 0, 0.1, 0.2},
                    {Row::kPush, 1, 0.1, 0.15},
                    {Row::kPull, 1, 0.15, 0.25},
                    {Row::kForward, 0, 0.4, 0.5}},
          .seconds = 0.6};
}

CaseCourse SomeCourse() {
  CaseCourse course{.figures = RunFigures{}};
  ReplayProfile& profile = *course.config.mutable_replay()->mutable_resolved_profile();
  for (const char* name : {"first<&>", "last"}) {
    ReplayBlock& block = *profile.add_blocks();
    block.set_name(name);
    block.set_parameters(1'000'000);
    block.set_backward_ms(50);
  }
  course.config.mutable_cluster()->set_servers(2);
  course.config.mutable_cluster()->set_workers(4);
  course.scheduled.bound = WorkedOutStep{0.08, SomeTimeline()};
  course.scheduled.predicted_seconds = 0.21;
  course.scheduled.timeline = SomeTimeline();
  return course;
}

ExperimentResults Sample() {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = kFile, .name = "a"});
  EXPECT_TRUE(plan.ok()) << plan.status();
  results.plan = *std::move(plan);
  for (uint32_t repeat = 0; repeat < 3; ++repeat) {
    for (const PlannedCase& one : results.plan.cases) {
      ExperimentRow row{.case_name = one.name, .repeat = repeat};
      const double milliseconds =
          kMilliseconds[one.values[0]][one.values[1]] * (repeat == 1 ? 1.1 : 1);
      row.measures = {
          {"mean_step_time", milliseconds}, {"exposed_time", milliseconds / 4}, {"overlap", 75.0}};
      results.rows.push_back(row);
    }
  }
  for (size_t i = 0; i < results.plan.cases.size(); ++i) results.courses.push_back(SomeCourse());
  results.courses[2].scheduled.settled = {8, 32768, 131072};
  results.courses[5].scheduled.predicted_seconds.reset();
  return results;
}

TEST(SchedulingSection, HasALineForEachCase) {
  const auto table = SchedulingTable(Sample(), OrderGroupsOf(Sample()));
  ASSERT_EQ(table.size(), 7u);
  EXPECT_THAT(table[1], ElementsAre("model a<b", "FIFO (WFBP)", "200 [200, 220]", "50", "75", "-",
                                    "80", "2.50", "210", "+5.0"));
  EXPECT_THAT(table[2], ElementsAre("model a<b", "BYTESCHEDULER", "100 [100, 110]", "25", "75",
                                    "2.00 [2.00, 2.00]", "80", "1.25", "210", "+110.0"));
  EXPECT_THAT(table[3][1], "AUTO (32 KiB, credit 128 KiB)");
  EXPECT_THAT(table[6], ElementsAre("model c", "AUTO (not settled)", "200 [200, 220]", "50", "75",
                                    "1.00 [1.00, 1.00]", "80", "2.50", "-", "-"));
}

TEST(SchedulingSection, SaysWhatPaysAndHowSureThatIs) {
  EXPECT_THAT(
      SchedulingFindings(OrderGroupsOf(Sample())),
      ElementsAre(
          "FIFO (WFBP): 2.50 times the lower bound",
          "BYTESCHEDULER: 0.80 to 2.00 times as fast as FIFO (WFBP), highest with model a<b; the "
          "whole "
          "interval is above 1.005 in 1 of 2 cases, below 0.995 in 1; 1.25 to 3.12 times the lower "
          "bound",
          "AUTO: 1.00 to 1.60 times as fast as FIFO (WFBP), highest with model a<b; the whole "
          "interval is "
          "above 1.005 in 1 of 2 cases, below 0.995 in 0; 1.56 to 2.50 times the lower bound",
          "Simulated step times differ from measured ones by 16.0% in the median of 5 cases, by "
          "110.0% at most (BYTESCHEDULER, model a<b)"));
}

TEST(SchedulingSection, DrawsTimelinesAndTheBound) {
  const ExperimentResults results = Sample();
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  const std::string section = SchedulingHtml(results);
  EXPECT_TRUE(absl::StrContains(page, section));
  EXPECT_THAT(section,
              AllOf(HasSubstr("Order of sending"), HasSubstr("model a&lt;b"),
                    HasSubstr("backward first&lt;&amp;&gt;, 100.0 to 200.0 ms"),
                    HasSubstr("the fluid schedule on the busiest link, 80.0 ms"),
                    HasSubstr("100 ms, 1.25 x bound, speed-up 2.00"),
                    HasSubstr("AUTO (32 KiB, credit 128 KiB)"), HasSubstr("class=\"bound\"")));
  // 2 models of 8 MB over 23.91 MB/s, compared with 100 ms.
  EXPECT_THAT(section, HasSubstr("669 ms for a step's bytes one way over the busiest link: 6.69 "
                                 "times as long"));
  EXPECT_THAT(ExperimentReportMarkdown(results, {}),
              AllOf(HasSubstr("## Order of sending"), HasSubstr("- AUTO: 1.00 to 1.60 times"),
                    HasSubstr("| AUTO (not settled) ")));
}

TEST(SchedulingSection, SaysWhyThereIsNoBound) {
  ExperimentResults results = Sample();
  for (CaseCourse& course : results.courses) {
    course.scheduled.bound.reset();
    course.scheduled.predicted_seconds.reset();
  }
  EXPECT_THAT(SchedulingFindings(OrderGroupsOf(results)).back(),
              HasSubstr("There is no lower bound"));
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(SchedulingHtml(results), Not(HasSubstr("class=\"bound\"")));
}

TEST(SchedulingSection, IsWholeAtEveryStage) {
  ExperimentResults results = Sample();
  const std::vector<ExperimentRow> rows = std::move(results.rows);
  results.rows.clear();
  EXPECT_EQ(SchedulingHtml(results), "");
  EXPECT_EQ(SchedulingMarkdown(results), "");
  const std::vector<CaseCourse> courses = std::exchange(results.courses, {});
  results.courses.resize(courses.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    results.rows.push_back(rows[i]);
    if (i < courses.size()) results.courses[i] = courses[i];
    ExpectWellFormed(ExperimentReportHtml(results));
  }
  results.rows[0].error = "gone";
  results.rows[0].measures.clear();
  ExpectWellFormed(ExperimentReportHtml(results));
  EXPECT_EQ(SchedulingTable(results, OrderGroupsOf(results)).size(), 7u)
      << "from the other repeats";
}

TEST(SchedulingSection, NeedsAReplay) {
  std::string text = kFile;
  text.replace(text.find("compute: REPLAY"), 15, "");
  text.replace(text.find("replay { profile: \"vgg16\" }"), 27, "data { path: \"x\" }");
  const auto plan = PlanExperiment({.text = text, .name = "a"});
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("SCHEDULING needs a replay"));
}

}  // namespace
}  // namespace tug
