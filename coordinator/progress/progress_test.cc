// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/progress.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
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
  Progress progress({.virtual_workers = 2});
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
  Progress progress({.virtual_workers = 3});
  progress.AddStep(7, Step(0, 0, 1));
  progress.AddStep(7, Step(1, 0, 1));
  progress.AddStep(9, Step(2, 0, 1));
  EXPECT_EQ(progress.TakeSteps().at(0).pushed_bytes, 200u);
}

TEST(Progress, IgnoresRepeatsAndStepsAlreadyComplete) {
  Progress progress({.virtual_workers = 2});
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
    Progress progress({.virtual_workers = kVirtualWorkers});
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
  Progress progress({.virtual_workers = 1, .start_version = 100});
  progress.AddStep(1, Step(1, 100, 1));
  progress.AddStep(1, Step(0, 99, 1));
  progress.AddStep(1, Step(0, 100 + StepCollector::kMaxOpenSteps, 1));
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
  Progress progress({.virtual_workers = 2});
  // Stopped at 20: worker 1 knew of the stop, worker 0 did not yet.
  progress.AddEval(Eval(0, 20, 4));
  progress.AddEval(last(1, 8));
  EXPECT_TRUE(progress.TakeEvals().empty());
  progress.AddEval(last(0, 8));
  const auto evals = progress.TakeEvals();
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_DOUBLE_EQ(evals[0].loss, 2.0);

  Progress both({.virtual_workers = 1});
  both.AddEval(Eval(0, 20, 4));
  both.AddEval(last(0, 8));
  EXPECT_EQ(both.TakeEvals().size(), 2u);
}

TEST(Progress, FoldsEvaluationsInOrderOfVersion) {
  Progress progress({.virtual_workers = 2});
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

TEST(Progress, KeepsEvaluationsThatASlowVirtualWorkerStillHasToMake) {
  Progress progress({.virtual_workers = 2, .start_clocks = {0, 0}});
  for (uint64_t version = 1; version <= 1000; ++version) progress.AddEval(Eval(0, version, 4));
  for (uint64_t version = 1; version <= 1000; ++version) progress.AddEval(Eval(1, version, 4));
  EXPECT_EQ(progress.TakeEvals().size(), 1000u);
}

TEST(Progress, MeasuresSpeedOverRecentSteps) {
  Progress progress({.virtual_workers = 1});
  EXPECT_EQ(progress.tokens_per_second(), 0);
  for (uint64_t clock = 0; clock < 200; ++clock) progress.AddStep(1, Step(0, clock, 1));
  EXPECT_NEAR(progress.tokens_per_second(), 60, 1e-9);
  EXPECT_NEAR(progress.seconds_per_step(), 0.5, 1e-9);
}

TEST(Progress, LeavesOutWhoSkippedAStep) {
  Progress progress({.virtual_workers = 3});
  StepReport skipped = Step(2, 0, 0);
  skipped.set_skipped(true);
  skipped.set_targets(0);
  skipped.set_step_seconds(99);
  progress.AddStep(9, skipped);
  progress.AddStep(7, Step(0, 0, 10));
  progress.AddStep(8, Step(1, 0, 30));
  const auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].skipped, 1u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 2.0);
  EXPECT_DOUBLE_EQ(steps[0].seconds, 0.6);
  EXPECT_DOUBLE_EQ(steps[0].mean_seconds, 0.55);
}

TEST(Progress, CompletesStepsWithoutReportsThatAreLost) {
  Progress progress({.virtual_workers = 2});
  progress.AddStep(7, Step(0, 0, 10));
  progress.AddStep(7, Step(0, 1, 20));
  progress.SetLost(1, 3);
  auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_DOUBLE_EQ(steps[1].loss, 2.0);
  progress.AddStep(8, Step(1, 2, 10));  // arrives too late
  progress.AddStep(7, Step(0, 2, 30));
  progress.AddStep(7, Step(0, 3, 30));
  EXPECT_DOUBLE_EQ(progress.TakeSteps().at(0).loss, 3.0);
  progress.AddStep(9, Step(1, 3, 10));
  EXPECT_EQ(progress.TakeSteps().at(0).step, 4u);
}

Progress InOrder(uint32_t virtual_workers, uint64_t start_version = 0,
                 std::vector<uint64_t> start_clocks = {}) {
  start_clocks.resize(virtual_workers, start_version);
  return Progress({.virtual_workers = virtual_workers,
                   .start_version = start_version,
                   .start_clocks = std::move(start_clocks)});
}

TEST(Progress, AspStepIsAFixedNumberOfReportsFromAnyWorker) {
  Progress progress = InOrder(2);
  progress.AddStep(7, Step(0, 0, 10));
  progress.AddStep(7, Step(0, 0, 99));  // a repeat
  EXPECT_TRUE(progress.TakeSteps().empty());
  progress.AddStep(7, Step(0, 1, 30));
  auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 2.0);
  EXPECT_DOUBLE_EQ(steps[0].seconds, 0.5) << "the mean of two reports of 0.5 s";
  EXPECT_EQ(steps[0].pushed_bytes, 200u) << "of two steps of the worker";
  progress.AddStep(8, Step(1, 0, 50));
  progress.AddStep(7, Step(0, 2, 10));
  steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 2u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 3.0);
  EXPECT_EQ(progress.pace(0)->clock, 3u);
  EXPECT_EQ(progress.pace(1)->clock, 1u);
  EXPECT_DOUBLE_EQ(progress.pace(0)->seconds, 0.5);
}

TEST(Progress, ARunThatGoesOnCountsFromItsClocksAndSaysNothingOfStepsTakenAgain) {
  Progress progress = InOrder(2, 10, {12, 6});  // two of 20 pushes are repeated
  EXPECT_EQ(progress.step(), 10u);
  for (uint64_t clock = 6; clock < 8; ++clock) progress.AddStep(8, Step(1, clock, 1));
  EXPECT_TRUE(progress.TakeSteps().empty());
  progress.AddStep(7, Step(0, 12, 20));
  progress.AddStep(8, Step(1, 8, 20));
  const auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 11u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 2.0);
}

TEST(Progress, AspCountsLostReports) {
  Progress progress = InOrder(2);
  progress.AddStep(7, Step(0, 0, 10));
  progress.SetLost(1, 5);
  const auto steps = progress.TakeSteps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_DOUBLE_EQ(steps[0].loss, 1.0);
  EXPECT_TRUE(std::isnan(steps[1].loss));
  EXPECT_DOUBLE_EQ(progress.loss().value(), 1.0);
  EXPECT_EQ(progress.pace(1)->clock, 5u);
}

TEST(Progress, TakesNoSpeedFromAReportThatCannotBe) {
  Progress progress = InOrder(1);
  const auto report = [&](uint64_t clock, double seconds) {
    StepReport step = Step(0, clock, 1);
    step.set_step_seconds(seconds);
    progress.AddStep(7, step);
    return progress.pace(0)->seconds;
  };
  EXPECT_EQ(report(0, std::nan("")), 0);
  EXPECT_DOUBLE_EQ(report(1, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(report(2, std::nan("")), 0.5);
  EXPECT_DOUBLE_EQ(report(3, -1), 0.5);
  EXPECT_DOUBLE_EQ(report(4, -HUGE_VAL), 0.5);
  EXPECT_DOUBLE_EQ(report(5, HUGE_VAL), 0.5);
  EXPECT_DOUBLE_EQ(report(6, 1e-300), 0.8 * 0.5 + 0.2 * 1e-6);
  EXPECT_EQ(progress.step(), 7u) << "the steps count all the same";
}

TEST(Progress, IsNotHeldUpByAnAbsurdClockOfALostWorker) {
  Progress progress({.virtual_workers = 2});
  progress.AddStep(7, Step(0, 0, 10));
  progress.SetLost(1, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(progress.TakeSteps().size(), 1u);
}

TEST(Progress, AnEvaluationIsWholeWithoutWhoIsAway) {
  Progress progress({.virtual_workers = 2});
  progress.AddEval(Eval(0, 20, 4));
  EXPECT_TRUE(progress.TakeEvals().empty());
  progress.SetAway(1, true);
  const std::vector<EvalMetrics> evals = progress.TakeEvals();
  ASSERT_EQ(evals.size(), 1u);
  EXPECT_EQ(evals[0].targets, Eval(0, 20, 4).targets());
  progress.AddEval(Eval(0, 30, 4));
  EXPECT_EQ(progress.TakeEvals().size(), 1u);
  progress.SetAway(1, false);
  progress.AddEval(Eval(0, 40, 4));
  EXPECT_TRUE(progress.TakeEvals().empty());
}

}  // namespace
}  // namespace tug
