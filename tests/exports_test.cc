// SPDX-License-Identifier: Apache-2.0
// Files of a job for other programs, CSV tables and TensorBoard event files: they agree with
// metrics.jsonl and have every step once, however often the job was started and recovered.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorboard.pb.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const Texts kExports = {"watch.tensorboard=true", "watch.csv=true"};

class ExportsTest : public DaemonTest {
 protected:
  // Rows by (timeline, step); a duplicate fails the test.
  std::map<std::pair<int, uint64_t>, double> Rows(const std::string& table) const {
    std::map<std::pair<int, uint64_t>, double> rows;
    std::vector<std::string> lines = absl::StrSplit(ReadText(Path(table)), '\n', absl::SkipEmpty());
    EXPECT_FALSE(lines.empty()) << table;
    size_t columns = 0;
    for (const std::string& line : lines) {
      const std::vector<std::string> values = absl::StrSplit(line, ',');
      if (columns == 0) columns = values.size();
      EXPECT_EQ(values.size(), columns) << line;
      if (values[0] == "timeline") {
        EXPECT_EQ(&line, &lines.front());
        continue;
      }
      const std::pair<int, uint64_t> key{std::stoi(values[0]), std::stoull(values[1])};
      EXPECT_TRUE(rows.emplace(key, std::stod(values[3])).second) << "twice: " << line;
    }
    return rows;
  }

  // Values of a tag by step, as TensorBoard reads them (a session start discards earlier values of
  // later steps).
  std::map<uint64_t, float> Curve(const std::string& run, const std::string& tag) const {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(Path(run + "/tensorboard"))) {
      files.push_back(file.path().string());
    }
    std::sort(files.begin(), files.end());  // as TensorBoard does
    std::map<uint64_t, float> curve;
    for (const std::string& path : files) {
      const std::string bytes = ReadText(path);
      for (size_t at = 0; at + 12 < bytes.size();) {
        uint64_t length = 0;
        std::copy_n(bytes.data() + at, sizeof(length), reinterpret_cast<char*>(&length));
        tensorboard::Event event;
        EXPECT_TRUE(event.ParseFromString(bytes.substr(at + 12, length))) << path;
        at += 16 + length;
        Take(event, tag, curve);
      }
    }
    return curve;
  }

  static void Take(const tensorboard::Event& event, const std::string& tag,
                   std::map<uint64_t, float>& curve) {
    const auto step = static_cast<uint64_t>(event.step());
    if (event.session_log().status() == tensorboard::SessionLog::START) {
      curve.erase(curve.lower_bound(step), curve.end());
    }
    for (const tensorboard::Summary::Value& value : event.summary().value()) {
      if (value.tag() != tag) continue;
      EXPECT_TRUE(curve.emplace(step, value.simple_value()).second) << "twice: step " << step;
    }
  }

  // Tables and curves of a run agree with metrics.jsonl.
  void ExpectWhatMetricsSay(const std::string& run) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    ASSERT_TRUE(losses.ok()) << losses.status();
    std::map<uint64_t, double> training, validation;
    for (const auto& [key, loss] : Rows(run + "/steps.csv")) training[key.second] = loss;
    for (const auto& [key, loss] : Rows(run + "/evaluations.csv")) validation[key.second] = loss;
    EXPECT_EQ(training, losses->training);
    EXPECT_EQ(validation, losses->validation);
    const std::map<uint64_t, float> curve = Curve(run, "train/loss");
    ASSERT_EQ(curve.size(), losses->training.size());
    for (const auto& [step, loss] : losses->training) {
      EXPECT_EQ(curve.at(step), static_cast<float>(loss)) << step;
    }
    EXPECT_FALSE(Curve(run, "validation/loss").empty());
  }
};

TEST_F(ExportsTest, SayWhatMetricsSayAndGoOnWhenResumed) {
  ASSERT_NO_FATAL_FAILURE(Train("run", kExports + Texts{"train.steps=30"}));
  ExpectWhatMetricsSay("run");
  std::ofstream(Path("run/steps.csv"), std::ios::app) << "1,31,0.5";  // an incomplete row
  const Process& resumed =
      Run(Texts{"train", job(), "--resume", Path("run")} + Set(kExports + Texts{"train.steps=40"}));
  ASSERT_EQ(resumed.exit_code(), 0) << resumed.err();
  const auto rows = Rows("run/steps.csv");
  EXPECT_THAT(rows, SizeIs(40));
  EXPECT_TRUE(rows.contains({2, 31}));
  EXPECT_THAT(Curve("run", "train/loss"), SizeIs(40));
}

TEST_F(ExportsTest, HaveEachStepOnceWhenAnotherCoordinatorTakesUp) {
  const Texts trace = {"trace.steps=20", "trace.first_step=1"};
  ASSERT_NO_FATAL_FAILURE(StartJob(Endless() + kExports + trace));
  const auto traced = [&] {
    return coordinator().err().find("trace written") != std::string::npos;
  };
  ASSERT_TRUE(coordinator().WaitUntil(traced, After(kPatience))) << coordinator().err();
  const uint64_t then = ReadLosses(Path("run"))->training.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(coordinator(), "run", then + 10));
  coordinator().Signal(SIGKILL);
  ASSERT_TRUE(coordinator().WaitForEnd(After(kPatience)));
  const uint64_t before = ReadLosses(Path("run"))->training.rbegin()->first;
  Process& next = Start({"coordinator", "--recover", Path("run")});
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(next, "run", before + 20));
  Run({"stop", "--coordinator", address()});
  ASSERT_TRUE(next.WaitForEnd(After(kPatience)));
  EXPECT_EQ(next.exit_code(), 0) << next.err();
  ExpectWhatMetricsSay("run");
  const std::map<uint64_t, double> training = ReadLosses(Path("run"))->training;
  EXPECT_EQ(training.size(), training.rbegin()->first) << "a step is missing";
}

}  // namespace
}  // namespace tug
