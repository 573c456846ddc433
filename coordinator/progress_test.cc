#include "coordinator/progress.h"

#include <algorithm>
#include <iostream>
#include <random>

#include "gtest/gtest.h"

namespace tug {
namespace {

StepReport Step(uint32_t virtual_worker, uint64_t clock, double loss_sum) {
  StepReport report;
  report.set_virtual_worker(virtual_worker);
  report.set_clock(clock);
  report.set_loss_sum(loss_sum);
  report.set_tokens(30);
  report.set_targets(10);
  report.set_step_seconds(0.5 + 0.1 * virtual_worker);
  report.set_wait_seconds(0.01 * virtual_worker);
  report.set_pushed_bytes(100);
  report.set_pulled_bytes(200);
  return report;
}

EvalReport Eval(uint32_t virtual_worker, uint64_t version, double loss_sum) {
  EvalReport report;
  report.set_virtual_worker(virtual_worker);
  report.set_version(version);
  report.set_loss_sum(loss_sum);
  report.set_targets(4);
  report.set_correct(virtual_worker + 1);
  return report;
}

TEST(Progress, CompletesAStepOnceEveryVirtualWorkerHasReported) {
  Progress progress(2, 0);
  progress.AddStep(7, Step(1, 0, 30));
  EXPECT_TRUE(progress.TakeSteps().empty());
  progress.AddStep(8, Step(0, 0, 10));
  const auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 1u);
  EXPECT_EQ(steps[0].tokens, 60u);
  EXPECT_EQ(steps[0].targets, 20u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 2.0);
  EXPECT_DOUBLE_EQ(steps[0].seconds, 0.6);
  EXPECT_DOUBLE_EQ(steps[0].wait_seconds, 0.01);
  EXPECT_DOUBLE_EQ(steps[0].mean_wait_seconds, 0.005);
  EXPECT_LT(steps[0].mean_seconds, steps[0].seconds);
  EXPECT_EQ(steps[0].pushed_bytes, 200u);
  EXPECT_EQ(progress.step(), 1u);
}

TEST(Progress, CountsBytesOncePerWorkerProcess) {
  Progress progress(3, 0);
  progress.AddStep(7, Step(0, 0, 1));
  progress.AddStep(7, Step(1, 0, 1));
  progress.AddStep(9, Step(2, 0, 1));
  EXPECT_EQ(progress.TakeSteps().at(0).pushed_bytes, 200u);
}

TEST(Progress, IgnoresRepeatsAndStepsAlreadyComplete) {
  Progress progress(2, 0);
  for (int i = 0; i < 3; ++i) progress.AddStep(1, Step(0, 0, 10));
  EXPECT_TRUE(progress.TakeSteps().empty());
  progress.AddStep(1, Step(1, 0, 10));
  progress.AddStep(1, Step(1, 0, 99));
  progress.AddStep(1, Step(0, 0, 99));
  EXPECT_EQ(progress.TakeSteps().size(), 1u);
  EXPECT_TRUE(progress.TakeSteps().empty());
}

TEST(Progress, LossBitsDependNeitherOnOrderNorOnWhoReports) {
  constexpr uint32_t kVirtualWorkers = 7;
  const uint64_t seed = 42;
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  std::vector<StepReport> reports;
  for (uint64_t clock = 0; clock < 5; ++clock) {
    for (uint32_t v = 0; v < kVirtualWorkers; ++v) {
      reports.push_back(Step(v, clock, static_cast<double>(random()) * 1e-13));
    }
  }
  std::vector<double> expected;
  for (int round = 0; round < 50; ++round) {
    Progress progress(kVirtualWorkers, 0);
    for (const StepReport& report : reports) progress.AddStep(random() % 3, report);
    std::vector<double> losses;
    for (const auto& step : progress.TakeSteps()) losses.push_back(step.loss);
    ASSERT_EQ(losses.size(), 5u);
    if (expected.empty()) expected = losses;
    EXPECT_EQ(losses, expected) << "round " << round;
    std::shuffle(reports.begin(), reports.end(), random);
  }
}

TEST(Progress, DropsReportsThatNoCorrectWorkerSends) {
  Progress progress(1, 100);
  progress.AddStep(1, Step(1, 100, 1));
  progress.AddStep(1, Step(0, 99, 1));
  progress.AddStep(1, Step(0, 100 + Progress::kMaxOpenSteps, 1));
  EXPECT_TRUE(progress.TakeSteps().empty());
  progress.AddStep(1, Step(0, 100, 1));
  EXPECT_EQ(progress.TakeSteps().at(0).step, 101u);
}

TEST(Progress, KeepsTheLastEvaluationApartFromOneDuringTrainingOfTheSameVersion) {
  const auto last = [](uint32_t virtual_worker, double loss_sum) {
    EvalReport report = Eval(virtual_worker, 20, loss_sum);
    report.set_final(true);
    return report;
  };
  Progress progress(2, 0);
  // Stopped at 20: worker 0 had not heard yet, worker 1 had.
  progress.AddEval(Eval(0, 20, 4));
  progress.AddEval(last(1, 8));
  EXPECT_TRUE(progress.TakeEvals().empty());
  progress.AddEval(last(0, 8));
  const auto evals = progress.TakeEvals();
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_DOUBLE_EQ(evals[0].loss, 2.0);

  Progress both(1, 0);
  both.AddEval(Eval(0, 20, 4));
  both.AddEval(last(0, 8));
  EXPECT_EQ(both.TakeEvals().size(), 2u);
}

TEST(Progress, FoldsEvaluationsInOrderOfVersion) {
  Progress progress(2, 0);
  progress.AddEval(Eval(0, 20, 4));
  progress.AddEval(Eval(1, 20, 4));
  EXPECT_EQ(progress.TakeEvals().size(), 1u);
  progress.AddEval(Eval(0, 30, 6));
  progress.AddEval(Eval(0, 30, 6));
  progress.AddEval(Eval(0, 20, 4));
  EXPECT_TRUE(progress.TakeEvals().empty());
  progress.AddEval(Eval(1, 30, 10));
  const auto evals = progress.TakeEvals();
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_EQ(evals[0].version, 30u);
  EXPECT_DOUBLE_EQ(evals[0].loss, 2.0);
  EXPECT_EQ(evals[0].targets, 8u);
  EXPECT_DOUBLE_EQ(evals[0].accuracy, 3.0 / 8) << "1 of 4 and 2 of 4";
  EXPECT_FALSE(evals[0].final);
  EXPECT_EQ(progress.newest_eval()->version, 30u);
}

TEST(Progress, MeasuresSpeedOverRecentSteps) {
  Progress progress(1, 0);
  EXPECT_EQ(progress.tokens_per_second(), 0);
  for (uint64_t clock = 0; clock < 200; ++clock) progress.AddStep(1, Step(0, clock, 1));
  EXPECT_NEAR(progress.tokens_per_second(), 60, 1e-9);
  EXPECT_NEAR(progress.seconds_per_step(), 0.5, 1e-9);
}

}  // namespace
}  // namespace tug
