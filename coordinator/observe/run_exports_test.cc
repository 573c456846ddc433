// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_exports.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/test_folder.h"
#include "coordinator/observe/step_columns.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

JobConfig Config() {
  JobConfig config;
  config.mutable_watch()->set_tensorboard(true);
  config.mutable_watch()->set_csv(true);
  config.mutable_optimizer()->set_learning_rate(0.5);
  config.mutable_optimizer()->set_schedule(OptimizerConfig::CONSTANT);
  return config;
}

class RunExportsTest : public ::testing::Test {
 protected:
  RunExports Open(const JobConfig& config) {
    absl::StatusOr<RunExports> exports = RunExports::Open(config, {.run_dir = folder_.path()});
    EXPECT_TRUE(exports.ok()) << exports.status();
    return *std::move(exports);
  }
  // Fields of a table's rows, the header first.
  std::vector<std::vector<std::string>> Rows(const std::string& table) const {
    std::ifstream file(folder_.path() + "/" + table);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) rows.push_back(absl::StrSplit(line, ','));
    return rows;
  }

  const TestFolder folder_;
};

TEST_F(RunExportsTest, WriteAValueForEachColumn) {
  RunExports exports = Open(Config());
  exports.SetSync({.updates = 4, .staleness = {2, 2}});
  exports.Step({.step = 1, .loss = 2.5, .tokens = 64, .seconds = 0.5, .residual_norm = 0.1}, 1.25,
               kNow, /*there=*/false);
  exports.Step({.step = 2, .loss = std::numeric_limits<double>::quiet_NaN()}, 2, kNow, false);
  exports.Eval({.version = 2, .loss = 2, .accuracy = 0.25, .targets = 8, .final = true}, 3, kNow,
               false);
  ASSERT_TRUE(exports.status().ok()) << exports.status();
  const auto steps = Rows("steps.csv");
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(absl::StrJoin(steps[0], ","),
            "timeline,step,at_seconds,loss,learning_rate,tokens,seconds,tokens_per_second,"
            "compute_seconds,wait_seconds,communication_seconds,overlap,mean_seconds,"
            "mean_wait_seconds,straggle_seconds,skipped,pushed_bytes,pulled_bytes,staleness,"
            "residual_norm");
  EXPECT_EQ(steps[1].size(), steps[0].size());
  EXPECT_THAT(std::vector(steps[1].begin(), steps[1].begin() + 8),
              ElementsAre("1", "1", "1.25", "2.5", "0.5", "64", "0.5", "128"));
  EXPECT_EQ(steps[1][18], "0.5");
  EXPECT_EQ(steps[1][19], "0.1");
  EXPECT_EQ(steps[2][3], "nan");
  EXPECT_THAT(Rows("evaluations.csv")[1],
              ElementsAre("1", "2", "3", "2", "7.38905609893065", "0.25", "8", "1"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/tensorboard"));
}

// Programs that read a table treat a column with an exponent as fractions.
TEST_F(RunExportsTest, WriteCountsAsWholeNumbers) {
  RunExports exports = Open(Config());
  exports.Step({.step = 1,
                .loss = 1e-05,
                .tokens = 2000,
                .seconds = 0.02,
                .pushed_bytes = 200'000,
                .pulled_bytes = 3'000'000'000'000},
               0.0001, kNow, /*there=*/false);
  const auto steps = Rows("steps.csv");
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_THAT(std::vector(steps[1].begin(), steps[1].begin() + 8),
              ElementsAre("1", "1", "0.0001", "1e-05", "0.5", "2000", "0.02", "100000"));
  EXPECT_EQ(steps[1][16], "200000");
  EXPECT_EQ(steps[1][17], "3000000000000");
}

TEST_F(RunExportsTest, WriteNothingThatIsThereAndNothingThatIsNotAskedFor) {
  RunExports exports = Open(Config());
  exports.Step({.step = 1, .loss = 2.5}, 1, kNow, /*there=*/true);
  EXPECT_THAT(Rows("steps.csv"), SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/tensorboard"));

  const TestFolder other;
  absl::StatusOr<RunExports> none = RunExports::Open(JobConfig(), {.run_dir = other.path()});
  ASSERT_TRUE(none.ok());
  none->Step({.step = 1, .loss = 2.5}, 1, kNow, false);
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
}

TEST_F(RunExportsTest, SayTheStalenessOfTheNewestUpdates) {
  RunExports exports = Open(Config());
  exports.SetSync({.updates = 4, .staleness = {4}});
  exports.SetSync({.updates = 6, .staleness = {4, 0, 0, 2}});
  exports.Step({.step = 1, .loss = 2.5}, 1, kNow, false);
  exports.SetSync({.updates = 3, .staleness = {0, 3}});  // a server was lost with its counts
  exports.Step({.step = 2, .loss = 2.5}, 1, kNow, false);
  const auto steps = Rows("steps.csv");
  ASSERT_THAT(steps, SizeIs(3));
  EXPECT_EQ(steps[1][18], "3");
  EXPECT_EQ(steps[2][18], "1");
}

TEST(StepColumns, NumberTheColumnsOfTheTableWithoutAGap) {
  std::vector<int> numbers;
  for (const StepColumn& column : StepColumns()) numbers.push_back(column.csv_column);
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], 3 + static_cast<int>(i));
}

TEST(StepColumns, AreThoseOfTheDocument) {
  std::string expected, listed;
  for (const StepColumn& column : StepColumns()) {
    const std::string tag = *column.tag == 0 ? "" : absl::StrCat("`", column.tag, "`");
    absl::StrAppend(&expected, "| `", column.name, "` | ", column.in_log ? "yes" : "", " | ",
                    column.csv_column, " | ", tag, " | ", column.meaning, " |\n");
  }
  std::ifstream document("docs/metrics.md");
  bool in_table = false;
  for (std::string line; std::getline(document, line);) {
    in_table = absl::StartsWith(line, in_table ? "|" : "| figure | `metrics.jsonl`");
    if (in_table && absl::StartsWith(line, "| `")) absl::StrAppend(&listed, line, "\n");
  }
  EXPECT_EQ(listed, expected) << "the table of docs/metrics.md should be:\n" << expected;
}

}  // namespace
}  // namespace tug
