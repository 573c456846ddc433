// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/answer.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A file with these lines, in which `value` is the measure of a case: none if below 0. A repeat
// after the first takes a hundredth more.
ExperimentResults Results(absl::string_view lines, const char* measure,
                          const std::function<double(const PlannedCase&)>& value,
                          uint32_t repeats = 2) {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = absl::StrCat("name: \"a\" question: \"Which?\"\n", lines),
                              .name = "a",
                              .made_up_text_path = "text",
                              .repeats = repeats});
  EXPECT_TRUE(plan.ok()) << plan.status();
  results.plan = *std::move(plan);
  for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
    for (const PlannedCase& one : results.plan.cases) {
      ExperimentRow row{.case_name = one.name, .repeat = repeat};
      if (value(one) >= 0) row.measures[measure] = value(one) * (1 + 0.01 * repeat);
      results.rows.push_back(row);
    }
  }
  return results;
}

constexpr char kReplay[] = R"(
job { compute: REPLAY replay { profile: "vgg16" } train { steps: 20 } optimizer { clip: OFF } }
)";

constexpr char kSync[] = R"(
job {
  data { tokenizer: CHARACTER } model { layers: 1 width: 32 heads: 2 context: 16 }
  cluster { workers: 4 virtual_workers: 4 }
  train { steps: 20 global_batch: 8 }
}
made_up_text_bytes: 100000
axes { field: "sync.policy" values: ["BSP", "SSP", "ASP"] }
baseline { where: "policy=BSP" }
measures: ["final_loss", "time_to_loss"]
target_loss: 1.92
)";

TEST(Answer, NamesTheCaseThatReachedTheLossFirstAndSaysThatStepsDiffer) {
  const ExperimentResults results = Results(
      kSync, "time_to_loss", [](const auto& one) { return 41.0 + 10 * one.values[0]; }, 1);
  EXPECT_EQ(AnswerOf(results),
            "BSP reached the target loss of 1.92 first, in 41.0 s, 1.24 times as fast as SSP; ASP "
            "and SSP make 4 updates for each of BSP's, since each worker's push is an update of "
            "its own: compare time and tokens, not steps; one run each, so small differences may "
            "be chance.");
}

TEST(Answer, SaysThatNoCaseReachedTheLoss) {
  EXPECT_THAT(AnswerOf(Results(kSync, "time_to_loss", [](const auto&) { return -1; })),
              StartsWith("no case reached the target loss of 1.92; "));
  const auto only_asp = [](const auto& one) { return one.values[0] == 2 ? 40 : -1; };
  EXPECT_THAT(AnswerOf(Results(kSync, "time_to_loss", only_asp)),
              StartsWith("ASP reached the target loss of 1.92 as the only case, in 40.2 s; "));
}

TEST(Answer, NamesTheNextMeasureIfNoCaseReachedTheLoss) {
  EXPECT_THAT(
      AnswerOf(
          Results(kSync, "final_loss", [](const auto& one) { return 2.0 + 0.5 * one.values[0]; })),
      StartsWith("no case reached the target loss of 1.92; BSP had the lowest final loss, "));
}

TEST(Answer, SaysInHowManyRunsTheLossWasReached) {
  ExperimentResults results =
      Results(kSync, "time_to_loss", [](const auto& one) { return 40.0 + 10 * one.values[0]; });
  results.rows[0].measures.clear();  // BSP, first repeat
  EXPECT_THAT(AnswerOf(results),
              StartsWith("BSP reached the target loss of 1.92 first in 1 of 2 runs, in 40.4 s, "
                         "1.25 times as fast as SSP; "));
}

TEST(Answer, ComparesWithTheBaselineInEachSetting) {
  const std::string lines = absl::StrCat(kReplay, R"(
axes { field: "comm.scheduler" values: ["FIFO", "PRIORITY"] }
axes { field: "place.testbed.link" values: ["none", "100mbit"] }
baseline { where: "scheduler=FIFO" }
verdicts { measure: "step_time" margin: 0.05 yes: "pays" no: "does not pay" }
)");
  const ExperimentResults results = Results(lines, "step_time", [](const PlannedCase& one) {
    const double link = one.values[1] == 0 ? 10 : 100;
    return one.values[0] == 1 && one.values[1] == 1 ? link / 2 : link;
  });
  EXPECT_EQ(
      AnswerOf(results),
      "link none: FIFO (WFBP) had the lowest step time, 10.05 ms, not clearly ahead of PRIORITY "
      "(pays: 0 of 1); link 100mbit: PRIORITY had the lowest step "
      "time, 50.25 ms, 2.00 times as fast as FIFO (WFBP) (pays: 1 of 1).");
}

TEST(Answer, CountsClearWinsInManySettings) {
  const std::string lines = absl::StrCat(kReplay, R"(
axes { field: "cluster.workers" values: ["1", "2", "3", "4"] }
axes { field: "comm.scheduler" values: ["FIFO", "PRIORITY"] }
baseline { where: "scheduler=FIFO" }
)");
  const ExperimentResults results = Results(lines, "step_time", [](const PlannedCase& one) {
    const bool priority = one.values[1] == 1;
    if (one.values[0] == 0) return 100.0;
    return priority ? 100.0 / (1 + static_cast<double>(one.values[0])) : 100.0;
  });
  EXPECT_EQ(
      AnswerOf(results),
      "PRIORITY had clearly the lowest step time in 3 of 4 settings, up to 4.00 times as fast "
      "as FIFO (WFBP) (workers 4); in 1 no case is clearly ahead.");
}

TEST(Answer, ComparesAllCasesWithoutABaseline) {
  const std::string lines = absl::StrCat(
      kReplay,
      "axes { field: \"cluster.workers\" values: [\"1\", \"2\"] } measures: \"batch_rate\"");
  EXPECT_EQ(
      AnswerOf(Results(lines, "batch_rate", [](const auto& one) { return 1.0 + one.values[0]; })),
      "workers 2 had the highest batch rate, 2.01 batches/s, 2.00 times that of workers 1.");
}

TEST(Answer, SaysWhatIsMissing) {
  ExperimentResults results = Results(kReplay, "step_time", [](const auto&) { return 6; });
  EXPECT_EQ(AnswerOf(results), "the job had a step time of 6.03 ms.");
  results.rows.pop_back();
  EXPECT_THAT(AnswerOf(results), StartsWith("after 1 of 2 runs, the job had"));
  results.rows[0].error = "it failed";
  EXPECT_THAT(AnswerOf(results), EndsWith("; 1 of 2 runs failed."));
  results.rows.clear();
  EXPECT_EQ(AnswerOf(results), "");
}

TEST(Answer, DoesNotWarnAboutUpdatesWithoutSynchronousCases) {
  ExperimentResults results = Results(absl::StrCat(kSync, "only { where: \"policy=ASP\" }"),
                                      "time_to_loss", [](const auto&) { return 3; });
  EXPECT_THAT(AnswerOf(results), Not(HasSubstr("updates for each")));
}

}  // namespace
}  // namespace tug
