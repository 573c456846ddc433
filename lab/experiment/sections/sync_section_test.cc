// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/sync_section.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiment/charts/well_formed.h"
#include "lab/experiment/sections/sync_charts.h"
#include "lab/experiment/sections/sync_results.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReplay[] = R"(
  compute: REPLAY
  replay { profile: "vgg16" }
  train { steps: 20 }
  optimizer { clip: OFF }
)";
constexpr char kTraining[] = R"(
  data { path: "text.txt" }
  train { steps: 20 global_batch: 8 }
)";

// Two workers, of which the first is 4 times as slow as the second.
std::string File(const std::string& job, const std::string& more = "") {
  return absl::StrCat(R"(
name: "sync"
question: "Who waits?"
job { cluster { workers: 2 })",
                      job, R"file(}
axes {
  name: "mode"
  value { label: "bsp" }
  value { label: "ssp(1)" set: "sync.policy=SSP" set: "sync.staleness=1" }
  value { label: "asp" set: "sync.policy=ASP" }
  value { label: "b<1>&" set: "sync.policy=BACKUP" }
  value { label: "local(4)" set: "sync.local_steps=4" }
}
axes {
  name: "straggler"
  value { label: "none" }
  value { label: "slow" set: "straggler.slowdown=4" }
  value { label: "pauses" set: "straggler.pause_probability=0.1" set: "straggler.pause_ms=1" }
}
sections: SYNC
)file",
                      more);
}

// Course of the first repeat of a run.
CaseCourse SampleCourse(const PlannedCase& one) {
  CaseCourse course{.config = one.config};
  ReplayProfile& profile = *course.config.mutable_replay()->mutable_resolved_profile();
  profile.set_name("late");
  profile.set_batch(4);
  ReplayBlock& block = *profile.add_blocks();
  block.set_parameters(1'000'000);
  block.set_forward_ms(10);
  block.set_backward_ms(20);
  RunFigures& figures = course.figures.emplace();
  for (uint32_t vw = 0; vw < 2; ++vw) {
    figures.workers.push_back({.virtual_worker = vw,
                               .steps = 20,
                               .seconds = 100,
                               .compute_seconds = 50,
                               .wait_seconds = 30.0 * vw,
                               .straggle_seconds = 20});
    course.timeline.push_back({vw, {{1, {0, 1}, {{0.5, 0.75}}}, {2, {1, 2}, {}}}});
  }
  figures.staleness = {1, 2, 3, 0};
  return course;
}

// Undisturbed, all modes reach 10, 11, 12, ... batches per second. With the slow worker BSP and SSP
// keep a quarter of that, ASP its bound, others 0.9; with pauses all keep a half.
double Speed(const PlannedCase& one, uint32_t repeat) {
  const double undisturbed = 10.0 + repeat;
  if (one.values[1] == 0) return undisturbed;
  if (one.values[1] == 2) return undisturbed / 2;
  if (one.values[0] == 2) return undisturbed * 1.25 / 2;
  return one.values[0] == 3 ? undisturbed * 0.9 : undisturbed / 4;
}

ExperimentResults Sample(const std::string& file, uint32_t repeats = 3) {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = file, .name = "a", .repeats = repeats});
  EXPECT_TRUE(plan.ok()) << plan.status();
  results.plan = *std::move(plan);
  for (const PlannedCase& one : results.plan.cases) {
    results.courses.push_back(SampleCourse(one));
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      ExperimentRow row{.case_name = one.name, .repeat = repeat};
      row.measures = {{"batch_rate", Speed(one, repeat)},
                      {"update_rate", 2 * Speed(one, repeat)},
                      {"wait_share", 20.0 + repeat},
                      {"most_wait_share", 40},
                      {"staleness", 1.5},
                      {"most_staleness", 3},
                      {"job_time", 2}};
      if (one.values == std::vector<size_t>{0, 1}) row.measures["straggler_pace"] = 98.0 + repeat;
      if (one.config.compute() != JobConfig::REPLAY) {
        row.measures["final_loss"] = 1.5 + 0.25 * static_cast<double>(one.values[0]);
      }
      results.rows.push_back(row);
    }
  }
  return results;
}

const SyncCase& CaseOf(const SyncPart& part, const char* mode, const char* straggler) {
  const SyncCase* one = part.Find(mode, straggler);
  EXPECT_NE(one, nullptr) << mode << " " << straggler;
  return one == nullptr ? part.cases.at(0) : *one;
}

TEST(SyncParts, CompareWithUndisturbedBspAndWithTheBoundOverTheRepeats) {
  const ExperimentResults results = Sample(File(kReplay));
  const std::vector<SyncPart> parts = SyncPartsOf(results);
  ASSERT_EQ(parts.size(), 1u);
  const SyncPart& part = parts[0];
  EXPECT_TRUE(part.replay);
  EXPECT_EQ(part.batch_samples, 8u);
  EXPECT_THAT(part.about,
              AllOf(HasSubstr("A replay of late: "), HasSubstr("30 ms per step"),
                    HasSubstr("(a model of 4.00 MB)"), HasSubstr("servers: 1."),
                    HasSubstr("slow: virtual worker 0 computes 4 times as long."),
                    HasSubstr("pauses: each virtual worker pauses in a step with probability 0.1, "
                              "1 ms on average")));
  EXPECT_THAT(part.Stragglers(), ElementsAre("none", "slow", "pauses"));
  const SyncCase& bsp = CaseOf(part, "bsp", "slow");
  EXPECT_DOUBLE_EQ(bsp.batches->median, 2.75);
  EXPECT_DOUBLE_EQ(bsp.batches->high, 3);
  EXPECT_DOUBLE_EQ(bsp.of_bsp->median, 0.25);
  EXPECT_DOUBLE_EQ(bsp.of_bsp->high, 0.25) << "in pairs of one repeat";
  EXPECT_DOUBLE_EQ(*bsp.bound, 0.25);
  EXPECT_DOUBLE_EQ(bsp.pace->median, 99);
  EXPECT_FALSE(bsp.staleness.has_value()) << "an update waits for all";
  const SyncCase& asp = CaseOf(part, "asp", "slow");
  EXPECT_DOUBLE_EQ(asp.of_itself->median, 0.625);
  EXPECT_DOUBLE_EQ(*asp.bound, 0.625) << "one of two workers, and a quarter of the other";
  EXPECT_DOUBLE_EQ(asp.staleness->median, 1.5);
  EXPECT_DOUBLE_EQ(*CaseOf(part, "b<1>&", "slow").bound, 1);
  EXPECT_DOUBLE_EQ(*CaseOf(part, "local(4)", "slow").bound, 0.25);
  EXPECT_FALSE(CaseOf(part, "bsp", "pauses").bound.has_value());
  EXPECT_DOUBLE_EQ(CaseOf(part, "asp", "pauses").of_itself->median, 0.5);
  EXPECT_EQ(part.UndisturbedBsp(), &part.cases[0]);
}

TEST(SyncParts, AreOfTheOtherAxes) {
  const ExperimentResults results =
      Sample(File(kReplay,
                  "axes { field: \"sync.replicas\" values: [\"1\", \"2\"] }\n"
                  "axes { field: \"cluster.servers\" values: [\"2\", \"3\"] }\n"
                  "exclude { where: \"mode=b<1>&\" }\nexclude { where: \"mode=local(4)\" }\n"));
  const std::vector<SyncPart> parts = SyncPartsOf(results);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[1].title, "Sync policies, replicas 1, servers 3");
  for (const SyncPart& part : parts) {
    EXPECT_EQ(part.cases.size(), 9u) << part.title;
    EXPECT_DOUBLE_EQ(CaseOf(part, "bsp", "slow").of_bsp->median, 0.25);
  }
}

TEST(SyncParts, HaveNoBoundWhereAWorkerCarriesSeveral) {
  const ExperimentResults results = Sample(File(kReplay, "set: \"cluster.virtual_workers=4\""));
  const std::vector<SyncPart> parts = SyncPartsOf(results);
  EXPECT_FALSE(CaseOf(parts.at(0), "bsp", "slow").bound.has_value());
}

TEST(SyncFindings, SayWhatTheFiguresComeTo) {
  const ExperimentResults results = Sample(File(kReplay));
  EXPECT_THAT(
      SyncFindings(SyncPartsOf(results).at(0)),
      AllOf(Contains("bsp with a worker 4 times as slow: 99.0% [98.0%, 100.0%] of the straggler's "
                     "pace, 25.0% [25.0%, 25.0%] of its undisturbed speed"),
            Contains(AllOf(HasSubstr("asp with a worker"),
                           HasSubstr("100.0% [100.0%, 100.0%] of the bound 0.625"))),
            Contains(AllOf(HasSubstr("b<1>& with a worker"), HasSubstr("90.0% [90.0%, 90.0%] of "
                                                                       "undisturbed bsp"))),
            Contains(HasSubstr("ssp(1) with random pauses: 50.0%"))));
}

TEST(SyncFindings, FindingsOfTrainingAreLosses) {
  ExperimentResults results = Sample(File(kTraining));
  for (ExperimentRow& row : results.rows) {
    if (row.case_name == "mode=asp, straggler=none" && row.repeat == 1) {
      row.measures["final_loss"] = std::nullopt;  // it diverged
    }
  }
  const SyncPart part = SyncPartsOf(results).at(0);
  EXPECT_EQ(part.batch_samples, 8u);
  const std::vector<std::string> findings = SyncFindings(part);
  EXPECT_THAT(findings, Contains("ssp(1), stragglers: none: final loss 1.7500 [1.7500, 1.7500], "
                                 "+0.2500 [+0.2500, +0.2500] compared with undisturbed bsp"));
  EXPECT_THAT(findings, Contains(AllOf(HasSubstr("asp, stragglers: none: final loss 2.0000"),
                                       HasSubstr("1 run without a finite final loss"))));
  EXPECT_THAT(findings, Not(Contains(HasSubstr("bound"))));
  EXPECT_EQ(SyncTable(part)[1].back(), "1.5000 [1.5000, 1.5000]");
}

TEST(SyncTable, HasALineForEachCaseByStraggler) {
  const ExperimentResults results = Sample(File(kReplay));
  const auto table = SyncTable(SyncPartsOf(results).at(0));
  ASSERT_EQ(table.size(), 16u);
  for (const auto& line : table) EXPECT_EQ(line.size(), table[0].size());
  EXPECT_THAT(table[6], ElementsAre("slow", "bsp", "2.75 [2.50, 3.00]", "0.25 [0.25, 0.25]",
                                    "0.25 [0.25, 0.25]", "0.25", "99.0 [98.0, 100.0]",
                                    "5.50 [5.00, 6.00]", "21 [20, 22]", "40 [40, 40]", "-", "-"));
  EXPECT_EQ(table[1][3], "1.00") << "with itself";
}

TEST(SyncSection, IsWellFormedAndFetchesNothing) {
  const ExperimentResults results = Sample(File(kReplay));
  const std::string html = SyncSectionHtml(results);
  ExpectWellFormed(html);
  EXPECT_THAT(html, AllOf(HasSubstr("Steps and waits of each worker"), HasSubstr("4 times as slow"),
                          HasSubstr("Staleness"), HasSubstr("Time of each worker"),
                          HasSubstr("b&lt;1&gt;&amp;"), HasSubstr("100% of bound"),
                          HasSubstr("the range of the repeats")));
  const std::string plain =
      absl::StrReplaceAll(html, {{"xmlns=\"http://www.w3.org/2000/svg\"", ""}});
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script")), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
  EXPECT_THAT(SyncSectionMarkdown(results),
              AllOf(HasSubstr("## Sync policies"), HasSubstr("| local(4) "),
                    HasSubstr("\n- bsp with a worker 4 times as slow")));
}

TEST(SyncSection, IsWholeAtEveryStage) {
  ExperimentResults results = Sample(File(kReplay), 2);
  const std::vector<ExperimentRow> rows = std::move(results.rows);
  results.rows.clear();
  EXPECT_EQ(SyncSectionHtml(results), "");
  for (const ExperimentRow& row : rows) {
    results.rows.push_back(row);
    if (row.repeat == 0) results.rows.back().error = "it failed";
    ExpectWellFormed(SyncSectionHtml(results));
  }
  results.courses.clear();
  const std::string html = SyncSectionHtml(results);
  ExpectWellFormed(html);
  EXPECT_THAT(html, AllOf(HasSubstr("Speed"), Not(HasSubstr("Steps and waits of each worker")),
                          Not(HasSubstr("Time of each worker"))));
}

TEST(SyncSection, BspAloneHasNoStaleness) {
  const ExperimentResults results = Sample(File(kReplay, "only { where: \"mode=bsp\" }"));
  EXPECT_EQ(StalenessSvg(SyncPartsOf(results).at(0)), "");
  EXPECT_THAT(SyncSectionHtml(results), Not(HasSubstr("number of updates of a segment")));
}

}  // namespace
}  // namespace tug
