// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/schedule_tuning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kKiB = 1 << 10;

JobConfig Config(uint32_t trials) {
  JobConfig config;
  CommConfig& comm = *config.mutable_comm();
  comm.set_partition_bytes(128 * kKiB);
  comm.set_credit_bytes(512 * kKiB);
  comm.set_pull_credit_bytes(96 * kKiB);
  comm.mutable_tuner()->set_trials(trials);
  comm.mutable_tuner()->set_steps_per_trial(2);
  comm.mutable_tuner()->set_drift(0.2);
  return config;
}

SegmentTable Table() {
  BlockTable blocks;
  for (const uint64_t elements : {100'000, 500'000, 30'000}) {
    blocks.add_blocks()->add_tensors()->add_shape(elements);
  }
  return *SegmentTable::Create(blocks, 4096);
}

// Workers and servers adopt each schedule at once.
class TuningTest : public testing::Test {
 protected:
  void Step(double seconds, std::optional<uint32_t> schedule) {
    tuning_->AddStep({.step = ++steps_, .mean_seconds = seconds, .schedule = schedule});
    for (TuningEvent& event : tuning_->TakeEvents()) events_.push_back(std::move(event));
  }
  uint32_t Number() {
    if (tuning_->for_servers().has_value()) tuning_->ServersHave(tuning_->for_servers()->number());
    return tuning_->for_workers().has_value() ? tuning_->for_workers()->number() : 0;
  }
  void Step(double seconds) { Step(seconds, Number()); }
  template <typename Event>
  std::vector<Event> Taken() const {
    std::vector<Event> found;
    for (const TuningEvent& event : events_) {
      if (const auto* wanted = std::get_if<Event>(&event)) found.push_back(*wanted);
    }
    return found;
  }

  std::optional<ScheduleTuning> tuning_{std::in_place, Config(6), Table(), /*predictions=*/false};
  uint64_t steps_ = 0;
  std::vector<TuningEvent> events_;
};

TEST_F(TuningTest, MeasuresTheJobsOwnScheduleFirstOnceItIsWarm) {
  Step(9);
  Step(9);
  Step(0.2);
  EXPECT_TRUE(events_.empty());
  Step(0.2);
  ASSERT_EQ(Taken<TrialMetrics>().size(), 1u);
  const TrialMetrics trial = Taken<TrialMetrics>().front();
  EXPECT_EQ(trial.step, 4u);
  EXPECT_EQ(trial.trial.point, (SchedulePoint{128 * kKiB, 512 * kKiB}));
  EXPECT_NEAR(trial.trial.seconds, 0.2, 1e-9);
  EXPECT_EQ(TuningText(trial),
            "trial 1 of 6: partition 128 KiB, credit 512 KiB: 200.0 ms per step");
  ASSERT_TRUE(tuning_->for_servers().has_value());
  EXPECT_EQ(tuning_->for_servers()->number(), 1u);
  EXPECT_EQ(tuning_->for_servers()->pull_credit_bytes(), tuning_->for_servers()->credit_bytes());
}

TEST_F(TuningTest, WorkersHaveAScheduleOnlyWhenAllServersDo) {
  for (int step = 0; step < 4; ++step) Step(0.2);
  ASSERT_TRUE(tuning_->for_servers().has_value());
  EXPECT_FALSE(tuning_->for_workers().has_value());
  tuning_->ServersHave(0);
  EXPECT_FALSE(tuning_->for_workers().has_value());
  tuning_->ServersHave(1);
  ASSERT_TRUE(tuning_->for_workers().has_value());
  EXPECT_EQ(tuning_->for_workers()->number(), 1u);
}

TEST_F(TuningTest, CountsOnlyStepsRunEntirelyUnderTheSchedule) {
  for (int step = 0; step < 4; ++step) Step(0.2);
  ASSERT_EQ(Number(), 1u);
  for (int step = 0; step < 10; ++step) Step(7, 0);             // still under the previous schedule
  for (int step = 0; step < 10; ++step) Step(7, std::nullopt);  // workers differ
  Step(7, 1);  // weights were requested under the previous schedule
  Step(0.1, 1);
  Step(0.1, 1);
  ASSERT_EQ(Taken<TrialMetrics>().size(), 2u);
  EXPECT_NEAR(Taken<TrialMetrics>().back().trial.seconds, 0.1, 1e-9);
}

TEST_F(TuningTest, TakesNoTimeThatCannotBe) {
  Step(9);
  Step(9);
  for (const double seconds : {0.0, -1.0, HUGE_VAL, std::nan("")}) Step(seconds);
  EXPECT_TRUE(events_.empty());
  Step(0.2);
  Step(0.2);
  ASSERT_EQ(Taken<TrialMetrics>().size(), 1u);
  EXPECT_NEAR(Taken<TrialMetrics>().front().trial.seconds, 0.2, 1e-9);
}

TEST_F(TuningTest, SettlesStaysAndStartsAgainAfterDrift) {
  while (Taken<SettledMetrics>().empty()) {
    Step(0.2);
    ASSERT_LT(steps_, 100u);
  }
  EXPECT_EQ(Taken<TrialMetrics>().size(), 6u);
  const SettledMetrics settled = Taken<SettledMetrics>().front();
  EXPECT_EQ(TuningText(settled).substr(0, 21), "settled on partition ");
  EXPECT_NE(TuningText(settled).find("no slower than the job's settings; 6 trials"),
            std::string::npos)
      << TuningText(settled);
  const uint32_t number = Number();
  for (int step = 0; step < 50; ++step) Step(0.2);
  EXPECT_EQ(Number(), number);
  while (Taken<DriftMetrics>().empty()) {
    Step(0.3);
    ASSERT_LT(steps_, 200u);
  }
  EXPECT_EQ(TuningText(Taken<DriftMetrics>().front()),
            "step time changed from 200.0 ms to 300.0 ms: tuning again");
  while (Taken<SettledMetrics>().size() < 2) {
    Step(0.3);
    ASSERT_LT(steps_, 300u);
  }
  EXPECT_TRUE(Taken<SettledMetrics>().back().again);
}

TEST_F(TuningTest, WaitsForAPredictionAfterTheFirstTrialAndFollowsIt) {
  tuning_.emplace(Config(6), Table(), /*predictions=*/true);
  for (int step = 0; step < 20; ++step) Step(0.2);
  ASSERT_EQ(Taken<TrialMetrics>().size(), 1u);
  ASSERT_EQ(Taken<StepPredictionWanted>().size(), 1u);
  const StepPredictionWanted wanted = Taken<StepPredictionWanted>().front();
  EXPECT_EQ(wanted.measured, (SchedulePoint{128 * kKiB, 512 * kKiB}));
  EXPECT_NEAR(wanted.measured_seconds, 0.2, 1e-9);
  EXPECT_FALSE(tuning_->for_servers().has_value());
  std::vector<double> seconds(wanted.points.size(), 0.2);
  seconds[3] = 0.1;
  tuning_->SetPrediction(wanted.round + 1, seconds);
  EXPECT_FALSE(tuning_->for_servers().has_value()) << "not the one that was asked for";
  tuning_->SetPrediction(wanted.round, seconds);
  ASSERT_TRUE(tuning_->for_servers().has_value());
  EXPECT_EQ(tuning_->for_servers()->partition_bytes(), wanted.points[3].partition_bytes);
  EXPECT_EQ(tuning_->for_servers()->credit_bytes(), wanted.points[3].credit_bytes);
}

TEST_F(TuningTest, GoesOnWithoutAPredictionThatFailed) {
  tuning_.emplace(Config(6), Table(), /*predictions=*/true);
  for (int step = 0; step < 4; ++step) Step(0.2);
  tuning_->SetPrediction(1, {});
  while (Taken<SettledMetrics>().empty()) {
    Step(0.2);
    ASSERT_LT(steps_, 100u);
  }
}

}  // namespace
}  // namespace tug
