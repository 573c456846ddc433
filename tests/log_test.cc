// SPDX-License-Identifier: Apache-2.0
// Logs of processes: machine-readable lines, whose number does not grow with the steps.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using Json = nlohmann::json;

class LogTest : public TugTest {
 protected:
  LogTest() { setenv("TUG_LOG_FORMAT", "json", /*overwrite=*/1); }
  ~LogTest() override { unsetenv("TUG_LOG_FORMAT"); }

  // Lines of all processes of a run; checks the members that every line must have.
  std::vector<Json> LinesOf(const Process& train, const std::string& run) const {
    std::string text = train.err();
    for (const auto& log : std::filesystem::directory_iterator(Path(run + "/logs"))) {
      absl::StrAppend(&text, ReadText(log.path().string()));
    }
    std::vector<Json> lines;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(Json::parse(std::string(line), nullptr, false));
      EXPECT_TRUE(lines.back().is_object()) << "not JSON: " << line;
      for (const char* member : {"time", "level", "message"}) {
        EXPECT_TRUE(lines.back().contains(member)) << line;
      }
    }
    return lines;
  }

  // Number of lines by level in a run of `steps` steps.
  std::map<std::string, int> CountLines(const std::string& run, int steps) {
    Process& train =
        StartTraining(run, {absl::StrCat("train.steps=", steps), "checkpoint.interval=1000000",
                            "train.eval_interval=1000000", "watch.page=false"});
    EXPECT_TRUE(train.WaitForEnd(After(kPatience)));
    EXPECT_EQ(train.exit_code(), 0) << train.err();
    std::map<std::string, int> counts;
    for (const Json& line : LinesOf(train, run)) ++counts[line.value("level", "?")];
    return counts;
  }
};

TEST_F(LogTest, MoreStepsAreNoMoreLines) {
  std::map<std::string, int> few = CountLines("few", 20);
  std::map<std::string, int> many = CountLines("many", 600);
  // Not equal: on a busy machine processes report delays.
  EXPECT_LE(many["info"], few["info"] + 10);
  EXPECT_GE(few["info"], 3);
  EXPECT_EQ(few["error"], 0);
  EXPECT_EQ(many["error"], 0);
}

TEST_F(LogTest, ErrorsAreLinesToo) {
  const Process& process = Run({"worker", "--coordinator", "nonsense"});
  EXPECT_EQ(process.exit_code(), 1);
  const Json line = Json::parse(process.err(), nullptr, false);
  ASSERT_TRUE(line.is_object()) << process.err();
  EXPECT_EQ(line["level"], "error");
  EXPECT_THAT(line["message"].get<std::string>(), testing::HasSubstr("nonsense"));
}

// Deployments may set the variable to an empty value.
TEST_F(LogTest, AnEmptyFormatIsNone) {
  setenv("TUG_LOG_FORMAT", "", /*overwrite=*/1);
  EXPECT_EQ(Run({"--version"}).exit_code(), 0);
  ExpectErrorLine(Run({"worker", "--coordinator", "nonsense"}), {"nonsense"});
}

TEST_F(LogTest, AFormatThatThereIsNotIsRefused) {
  setenv("TUG_LOG_FORMAT", "xml", /*overwrite=*/1);
  ExpectErrorLine(Run({"status"}), {"TUG_LOG_FORMAT", "xml", "text or json"});
}

}  // namespace
}  // namespace tug
