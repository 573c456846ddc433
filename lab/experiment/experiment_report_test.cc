// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/experiment_report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"
#include "lab/experiment/plan/case_choice.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = R"(
name: "sizes"
question: "Is <small> better & faster?"
job {
  compute: REPLAY
  replay { profile: "vgg16" }
  train { steps: 20 }
  optimizer { clip: OFF }
}
axes { field: "cluster.workers" values: ["1", "2", "4"] }
axes { name: "order" field: "comm.scheduler" values: ["FIFO", "PRIORITY"] }
axes { name: "place" field: "place.testbed.link" values: ["none", "100mbit"] }
baseline { where: "order=FIFO" }
measures: ["step_time", "final_loss"]
figures { measure: "step_time" over: "workers" by: "order" }
figures { measure: "step_time" over: "order" by: "workers" }
warm_up_steps: 3
)";

// PRIORITY takes 0.8 of FIFO's time; repeats become slower and slower.
ExperimentResults Sample(uint32_t repeats) {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = kFile, .name = "a", .repeats = repeats});
  EXPECT_TRUE(plan.ok()) << plan.status();
  results.plan = *std::move(plan);
  results.command = "tug experiment 'a & <b>'";
  for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
    for (const PlannedCase& one : results.plan.cases) {
      ExperimentRow row{.case_name = one.name, .repeat = repeat, .seed = 1 + repeat};
      row.measures["step_time"] =
          100.0 * (repeat + 1) * (one.values[1] == 1 ? 0.8 : 1) / (1.0 + one.values[0]);
      row.origin = {.started = absl::StrCat("2026-01-0", repeat + 1, "T00:00:00Z"),
                    .command = "tug train 'x<y>'",
                    .version = "tug 1",
                    .build = "0123",
                    .commit = "4567",
                    .machine = "two cores"};
      results.rows.push_back(row);
    }
  }
  return results;
}

TEST(ExperimentReport, IsOnePageWithAllThereIs) {
  const std::string page = ExperimentReportHtml(Sample(3));
  ExpectWellFormed(page);
  EXPECT_THAT(page,
              AllOf(HasSubstr("Is &lt;small&gt; better &amp; faster?"),
                    HasSubstr("12 cases, 3 repeats each, seeds 1 to 3; 36 runs have ended"),
                    HasSubstr("two cores"), HasSubstr("2026-01-01T00:00:00Z to 2026-01-03"),
                    HasSubstr("4567"), HasSubstr("the first 3 steps"),
                    HasSubstr("median [smallest, largest]"), HasSubstr("tug train 'x&lt;y&gt;'"),
                    HasSubstr("place 100mbit"), HasSubstr("&quot;repeat&quot;:2")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("<link"))) << "nothing from elsewhere";
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(ExperimentReport, ComparesInPairs) {
  const ExperimentResults results = Sample(3);
  const auto table = BaselineTable(results);
  ASSERT_EQ(table.size(), 7u) << "a heading, and the cases with PRIORITY";
  ASSERT_EQ(table[0].size(), 4u) << "nothing is learned: no losses";
  EXPECT_EQ(table[1][3], "0.800 [0.800, 0.800]; 3/3, p 0.25");
}

TEST(ExperimentReport, HasTheMedianAndItsSpread) {
  const auto table = MeasureTable(Sample(3));
  ASSERT_EQ(table.size(), 13u);
  EXPECT_EQ(table[0][3], "step time (ms)");
  EXPECT_EQ(table[1][3], "200.00 [100.00, 300.00]");
  EXPECT_EQ(table[1].back(), "3");
}

TEST(ExperimentReport, SaysWhichIsBestAndHowSureThatIs) {
  const auto findings = Findings(Sample(3));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0], AllOf(HasSubstr("step time (ms): lowest with workers=4, order=PRIORITY"),
                                 HasSubstr("overlap")));
}

TEST(ExperimentReport, DrawsAPanelForEveryOtherCombination) {
  const auto figures = DrawFigures(Sample(2));
  ASSERT_EQ(figures.size(), 2u);
  for (const DrawnFigure& figure : figures) {
    ExpectWellFormed(figure.svg);
    EXPECT_THAT(figure.svg, AllOf(HasSubstr("place none"), HasSubstr("place 100mbit")));
  }
  EXPECT_THAT(figures[0].svg, HasSubstr("<path")) << "numbers are joined";
  EXPECT_THAT(figures[1].svg, Not(HasSubstr("<path"))) << "names are not";
}

TEST(ExperimentReport, DrawsPanelsWithScalesOfTheirOwnAndAHatchedPart) {
  ExperimentResults results = Sample(2);
  for (ExperimentRow& row : results.rows) {
    if (row.case_name.find("100mbit") != std::string::npos) *row.measures["step_time"] *= 1000;
    row.measures["exposed_time"] = 7;
  }
  results.plan.figures = {{.measure = FindMeasure("step_time"),
                           .over = 1,
                           .by = 0,
                           .panels = 2,
                           .part = FindMeasure("exposed_time")}};
  const std::vector<DrawnFigure> figures = DrawFigures(results);
  ASSERT_EQ(figures.size(), 1u);
  ExpectWellFormed(figures[0].svg);
  EXPECT_THAT(figures[0].svg,
              AllOf(HasSubstr("class=\"wait\""), HasSubstr(">50<"), HasSubstr(">50000<")));
  EXPECT_THAT(figures[0].text,
              AllOf(HasSubstr("Hatched: exposed time"), HasSubstr("its own scale")));
}

// The second of two trainings diverges.
TEST(ExperimentReport, DrawsLossesAsFarAsTheyAreFinite) {
  ExperimentResults results = Sample(1);
  results.plan.file.add_sections(Experiment::LOSSES);
  results.courses.resize(results.plan.cases.size());
  for (size_t number = 0; number < 2; ++number) {
    RunFigures& figures = results.courses[number].figures.emplace();
    for (uint64_t step = 1; step <= 40; ++step) {
      const double loss = number == 1 && step > 20 ? NAN : 5 - 0.1 * static_cast<double>(step);
      figures.steps.push_back({.step = step,
                               .seconds = 0.1 * static_cast<double>(step),
                               .loss = loss,
                               .pushed_bytes = 3'000'000,
                               .pulled_bytes = 1'000'000});
      if (step % 20 == 0) figures.evals.push_back({step, 0.1, loss, step == 40});
    }
  }
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page,
              AllOf(HasSubstr("time (s)"), HasSubstr("pushed and pulled (MB)"),
                    HasSubstr("loss (nats per token)"), HasSubstr(">150<"), Not(HasSubstr("nan"))))
      << "160 MB in all";
}

TEST(ExperimentReport, IsWholeAtEveryStage) {
  ExperimentResults results = Sample(2);
  const std::vector<ExperimentRow> rows = std::move(results.rows);
  results.rows.clear();
  ExpectWellFormed(ExperimentReportHtml(results));
  EXPECT_THAT(ExperimentReportHtml(results), HasSubstr("Nothing has been measured yet"));
  for (const ExperimentRow& row : rows) {
    results.rows.push_back(row);
    ExpectWellFormed(ExperimentReportHtml(results));
  }
  EXPECT_EQ(results.Missing(), 0u);
}

TEST(ExperimentReport, ShowsWhatFailed) {
  ExperimentResults results = Sample(2);
  results.rows[1].error = "worker-1: <gone>";
  results.rows[1].measures.clear();
  EXPECT_EQ(results.Failed(), 1u);
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Failed runs"), HasSubstr("worker-1: &lt;gone&gt;"),
                          HasSubstr("24 runs have ended, 1 of them failed")));
  EXPECT_THAT(ExperimentReportMarkdown(results, {}), HasSubstr("## Failed runs"));
}

TEST(ExperimentReport, DrawsLossesInARowForEveryOtherCombination) {
  ExperimentResults results = Sample(1);
  results.plan.file.add_sections(Experiment::LOSSES);
  for (const PlannedCase& one : results.plan.cases) {
    CaseCourse& course = results.courses.emplace_back(CaseCourse{.config = one.config});
    RunFigures& figures = course.figures.emplace();
    for (uint64_t step = 1; step <= 20; ++step) {
      figures.steps.push_back(
          {step, static_cast<double>(step), 5.0 - 0.1 * static_cast<double>(step)});
    }
    figures.evals = {{20, 20, 3.1, true}};
  }
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  for (const char* title : {"order FIFO (WFBP), place none", "order PRIORITY, place 100mbit"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat(">", title, "<")));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("<title>4: 3.1000</title>"), HasSubstr(">samples</text>")))
      << "the first axis has the colours";
}

TEST(ExperimentReport, BeginsWithTheAnswer) {
  const std::string page = ExperimentReportHtml(Sample(3));
  const size_t heading = page.find("</h1>\n<p class=\"answer\"><b>Answer:</b> ");
  ASSERT_NE(heading, std::string::npos);
  EXPECT_THAT(page.substr(heading, 400), HasSubstr(".</p>\n<dl>"));
}

// A report of the cases of --case.
TEST(ExperimentReport, LeavesOutCasesThatAreNotPartOfThePlan) {
  ExperimentResults results = Sample(2);
  std::vector<bool> kept;
  for (const PlannedCase& one : results.plan.cases) {
    kept.push_back(one.name == "workers=2, order=PRIORITY, place=none");
  }
  KeepCases(kept, results.plan);
  std::erase_if(results.rows, [&](const ExperimentRow& row) {
    return row.case_name != results.plan.cases[0].name;
  });
  const std::string page = ExperimentReportHtml(results);
  const std::string text = ExperimentReportMarkdown(results, {"figure-1.svg", "figure-2.svg"});
  for (const std::string& report : {page, text}) {
    EXPECT_THAT(report, AllOf(HasSubstr("PRIORITY"), HasSubstr("1 case, 2 repeats each"),
                              Not(HasSubstr("FIFO")), Not(HasSubstr("100mbit")),
                              Not(HasSubstr("ompared with the baseline"))));
  }
  EXPECT_THAT(page, AllOf(HasSubstr(">2</text>"), Not(HasSubstr(">4</text>"))));
}

TEST(ExperimentReport, HasMarkdownForTheDocuments) {
  const std::string text = ExperimentReportMarkdown(Sample(2), {"figure-1.svg", "figure-2.svg"});
  EXPECT_THAT(text, AllOf(HasSubstr("# sizes: Is <small> better & faster?\n\n**Answer:** "),
                          HasSubstr("![Step time](figure-1.svg)"), HasSubstr("| workers "),
                          HasSubstr("## Compared with the baseline")));
}

}  // namespace
}  // namespace tug
