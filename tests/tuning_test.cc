// SPDX-License-Identifier: Apache-2.0
// `comm.scheduler: AUTO`: real jobs whose schedule changes while they run.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/median.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kTrials = 8;
constexpr int kSteps = 200;

constexpr char kProfile[] = R"(
name: "late"
batch: 16
blocks { name: "a" parameters: 50000 forward_ms: 10 backward_ms: 10 }
blocks { name: "b" parameters: 50000 forward_ms: 5 backward_ms: 10 }
blocks { name: "fc" parameters: 250000 forward_ms: 5 backward_ms: 5 }
)";

class TuningTest : public TugTest {
 protected:
  // The initial schedule has one partition per block and credit for all: no overtaking.
  TuningTest() {
    Write("late.textproto", kProfile);
    Write("job.textproto", absl::StrCat(R"(
name: "late"
compute: REPLAY
replay { profile: "late.textproto" }
cluster { servers: 1 workers: 2 lanes_per_server: 1 }
optimizer { clip: OFF }
comm {
  scheduler: AUTO shared_memory: false segment_elements: 4096
  partition_bytes: 1048576 credit_bytes: 4194304 pull_credit_bytes: 4194304
  impair { rate_mbit: 500 }
)",
                                        "tuner { trials: ", kTrials, R"( steps_per_trial: 3 }
}
checkpoint { interval: 0 }
fault { heartbeat_ms: 20 }
train { steps: )",
                                        kSteps, " }"));
  }

  std::vector<nlohmann::json> Lines(const std::string& kind) const {
    std::vector<nlohmann::json> found;
    for (const absl::string_view line :
         absl::StrSplit(ReadText(Path("run/metrics.jsonl")), '\n', absl::SkipEmpty())) {
      nlohmann::json json = nlohmann::json::parse(std::string(line));
      if (json["kind"] == kind) found.push_back(std::move(json));
    }
    return found;
  }
};

TEST_F(TuningTest, SettlesOnPredictedScheduleNoSlowerThanTheJobsOwn) {
  ASSERT_NO_FATAL_FAILURE(Train("run"));
  const std::vector<nlohmann::json> trials = Lines("trial");
  ASSERT_GE(trials.size(), static_cast<size_t>(kTrials));
  EXPECT_EQ(trials[0]["partition_bytes"], 1048576);
  EXPECT_EQ(trials[0]["credit_bytes"], 4194304);
  EXPECT_TRUE(trials[0]["predicted_seconds"].is_null());
  EXPECT_TRUE(trials[1]["predicted_seconds"].is_number());
  const std::vector<nlohmann::json> settled = Lines("settled");
  ASSERT_GE(settled.size(), 1u);
  EXPECT_EQ(settled[0]["trials"], kTrials);

  std::vector<double> after;
  for (const nlohmann::json& step : Lines("step")) {
    // Skips steps that began under the last trial.
    if (step["step"] > settled[0]["step"].get<int>() + 5) after.push_back(step["mean_seconds"]);
  }
  ASSERT_GE(after.size(), 20u);
  // A loose bound: other tests may run at the same time.
  EXPECT_LE(Median(after), 1.2 * trials[0]["seconds"].get<double>());
}

TEST_F(TuningTest, SaysWhatItTriesAndWhereItSettles) {
  Process& train = StartTraining("run", {});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_THAT(train.err(),
              AllOf(HasSubstr("comm: trial 1 of 8: partition 1 MiB, credit 4 MiB: "),
                    HasSubstr("comm: trial 8 of 8: "), HasSubstr("comm: settled on partition "),
                    HasSubstr("than the job's settings; 8 trials")));
}

TEST_F(TuningTest, SaysThatItHadNotSettled) {
  Process& train = StartTraining("run", {"train.steps=10"});
  ASSERT_TRUE(train.WaitForEnd(After(kPatience)));
  ASSERT_EQ(train.exit_code(), 0) << train.err();
  EXPECT_THAT(train.err(),
              AllOf(HasSubstr("comm.scheduler AUTO: the job ended during tuning (trial "),
                    HasSubstr(" of 8), so its steps")));
}

TEST_F(TuningTest, OtherSchedulersTryNothing) {
  ASSERT_NO_FATAL_FAILURE(Train("run", {"comm.scheduler=BYTESCHEDULER", "train.steps=10"}));
  EXPECT_TRUE(Lines("trial").empty());
  EXPECT_TRUE(Lines("settled").empty());
}

}  // namespace
}  // namespace tug
