// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/results/verdicts.h"

#include <cmath>

#include "absl/strings/str_cat.h"
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

constexpr char kFile[] = R"(
name: "codecs"
question: "Do they pay?"
job {
  data { tokenizer: CHARACTER path: "text.txt" }
  train { steps: 20 }
}
axes {
  name: "codec"
  value { label: "fp32" }
  value { label: "int8" set: "comm.push_codec.int8={}" }
}
baseline { where: "codec=fp32" }
)";

constexpr char kLinks[] =
    "axes { field: \"place.testbed.link\" values: [\"none\", \"100mbit\"] }\n";
constexpr char kPays[] =
    "verdicts { measure: \"step_time\" margin: 0.05 yes: \"pays\" no: \"does not pay\" }\n";
constexpr char kLearns[] =
    "verdicts { measure: \"final_loss\" margin: -0.03 yes: \"as well\" no: \"not as well\" }\n";

// `values`: by case, then by repeat.
ExperimentResults Results(const std::string& more, const char* measure,
                          const std::vector<std::vector<double>>& values) {
  ExperimentResults results;
  auto plan = PlanExperiment({.text = absl::StrCat(kFile, more), .name = "a"});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return results;
  results.plan = *std::move(plan);
  EXPECT_EQ(results.plan.cases.size(), values.size());
  for (size_t number = 0; number < values.size(); ++number) {
    for (size_t repeat = 0; repeat < values[number].size(); ++repeat) {
      ExperimentRow row{.case_name = results.plan.cases[number].name,
                        .repeat = static_cast<uint32_t>(repeat)};
      row.measures[measure] = values[number][repeat];
      results.rows.push_back(row);
    }
  }
  return results;
}

std::vector<Answer> AnswersOf(const ExperimentResults& results) {
  std::vector<Answer> answers;
  for (const CaseVerdict& one : VerdictsOf(results, results.plan.verdicts.at(0))) {
    if (one.answer.has_value()) answers.push_back(*one.answer);
  }
  return answers;
}

TEST(Verdicts, AreThoseOfTheWholeInterval) {
  const auto answers = [](const std::vector<double>& values) {
    return AnswersOf(Results(kPays, "step_time", {{100, 200, 300}, values}));
  };
  EXPECT_THAT(answers({95, 150, 200}), ElementsAre(Answer::kYes)) << "95 are at least 5% less";
  EXPECT_THAT(answers({96, 192, 300}), ElementsAre(Answer::kNo));
  EXPECT_THAT(answers({50, 100, 288}), ElementsAre(Answer::kNotClear)) << "0.96 in one repeat";
  EXPECT_THAT(answers({}), ElementsAre());
}

TEST(Verdicts, LossVerdictsCompareDifferenceWithMargin) {
  const auto answers = [](const std::vector<double>& values) {
    return AnswersOf(Results(kLearns, "final_loss", {{2, 2, 2}, values}));
  };
  EXPECT_THAT(answers({2.02, 1.9, 2.0299}), ElementsAre(Answer::kYes));
  EXPECT_THAT(answers({2.04, 2.5, 2.031}), ElementsAre(Answer::kNo));
  EXPECT_THAT(answers({2.02, 2.04, 2}), ElementsAre(Answer::kNotClear));
  EXPECT_THAT(answers({1, 1, NAN}), ElementsAre(Answer::kNo)) << "it has diverged";
  EXPECT_THAT(answers({NAN, NAN, NAN}), ElementsAre(Answer::kNo));
}

TEST(Verdicts, VerdictsOfRatesRequireLargerValues) {
  const std::string more =
      "verdicts { measure: \"batch_rate\" margin: 0.1 yes: \"faster\" no: \"not faster\" }\n";
  const auto answers = [&](const std::vector<double>& values) {
    return AnswersOf(Results(more, "batch_rate", {{10, 10, 10}, values}));
  };
  EXPECT_THAT(answers({11, 12, 20}), ElementsAre(Answer::kYes));
  EXPECT_THAT(answers({10.9, 1, 10}), ElementsAre(Answer::kNo));
}

TEST(Verdicts, AreATableOfTheBaselinesAxesByTheOthers) {
  const ExperimentResults results =
      Results(absl::StrCat(kLinks, kPays), "step_time",
              {{10, 10, 10}, {100, 110, 120}, {12, 12, 12}, {50, 55, 60}});
  const std::vector<VerdictTable> tables = VerdictTables(results);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_THAT(tables[0].cells,
              ElementsAre(ElementsAre("codec", "link=none", "link=100mbit"),
                          ElementsAre("fp32", "10.00", "110.00"),
                          ElementsAre("int8", "does not pay: 1.200 [1.200, 1.200], 12.00",
                                      "pays: 0.500 [0.500, 0.500], 55.00")));
  EXPECT_THAT(tables[0].text, AllOf(HasSubstr("codec=fp32"), HasSubstr("at most 0.95 times"),
                                    HasSubstr("median of the case, in ms.")));
  const std::string page = ExperimentReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Pays, or does not pay"), HasSubstr("pays: 0.500")));
  EXPECT_THAT(ExperimentReportMarkdown(results, {}), HasSubstr("## Pays, or does not pay"));
}

TEST(Verdicts, SayWhatHasNoFiniteValue) {
  const auto tables = VerdictTables(Results(kLearns, "final_loss", {{2, 2, 2}, {2, NAN, 2}}));
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].cells[1][1], "2.0000");
  EXPECT_EQ(tables[0].cells[2][1],
            "not as well: +0.0000 [+0.0000, +0.0000], 2.0000; no finite value in 1 of 3 repeats");
  EXPECT_THAT(tables[0].text, HasSubstr("at most 0.03 more"));
  const auto none = VerdictTables(Results(kLearns, "final_loss", {{2, 2, 2}, {NAN, NAN, NAN}}));
  EXPECT_EQ(none[0].cells[2][1], "not as well; no finite value in 3 of 3 repeats");
}

TEST(Verdicts, VerdictsAtBestRateNeedNoBaselineAtThatRate) {
  const std::string more =
      "axes { name: \"rate\" field: \"optimizer.learning_rate\" values: [\"1e-3\", \"2e-3\"] }\n"
      "exclude { where: \"codec=fp32\" where: \"rate=1e-3\" }\n"
      "verdicts { measure: \"final_loss\" margin: -0.03 yes: \"as well\" no: \"not as well\" "
      "best_over: \"rate\" }\n";
  EXPECT_THAT(AnswersOf(Results(more, "final_loss", {{2.0}, {2.01}, {3.0}})),
              ElementsAre(Answer::kYes));
}

TEST(Verdicts, TellALineFromTheHeadings) {
  ExperimentResults results = Results(kPays, "step_time", {{100}, {50}});
  results.plan.axes[0].titles[0] = results.plan.axes[0].name;
  const auto tables = VerdictTables(results);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].cells.size(), 3u);
}

TEST(Verdicts, AreOfTheRateThatSuitsEachCaseBest) {
  const std::string more =
      "axes { name: \"rate\" field: \"optimizer.learning_rate\" values: [\"1e-3\", \"2e-3\"] }\n"
      "verdicts { measure: \"final_loss\" margin: -0.03 yes: \"as well\" no: \"not as well\" "
      "best_over: \"rate\" }\n";
  const auto tables = VerdictTables(Results(more, "final_loss", {{2.2}, {2.0}, {2.01}, {3.0}}));
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_THAT(
      tables[0].cells,
      ElementsAre(ElementsAre("codec", "final loss (nats per token)"),
                  ElementsAre("fp32", "2.0000 with rate=2e-3"),
                  ElementsAre("int8", "as well: +0.0100 (one run), 2.0100 with rate=1e-3")));
}

TEST(Verdicts, AreWholeAtEveryStage) {
  const std::vector<std::vector<double>> values = {{10, 10}, {9, 9}};
  ExperimentResults results = Results(kPays, "step_time", values);
  const std::vector<ExperimentRow> rows = std::move(results.rows);
  results.rows.clear();
  for (const ExperimentRow& row : rows) {
    results.rows.push_back(row);
    ExpectWellFormed(ExperimentReportHtml(results));
    EXPECT_THAT(ExperimentReportHtml(results), Not(HasSubstr("nan")));
  }
}

}  // namespace
}  // namespace tug
