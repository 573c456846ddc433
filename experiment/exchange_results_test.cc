#include "experiment/exchange_results.h"

#include <cmath>
#include <string>

#include "experiment/exchange_sample.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

ExchangeCase Case(const std::string& text) { return ParseExchangeCase(text).value(); }

const ExchangeRun& Found(const ExchangeResults& results, const std::string& text,
                         const std::string& link = "200mbit", double size = 4e6) {
  return *results.Find(Case(text), link, size);
}

TEST(ExchangeResults, StepsAreThoseAfterTheWarmUp) {
  const ExchangeResults results = SampleExchangeResults();
  const ExchangeRun& run = Found(results, "ring");
  const double seconds = results.CostOf(run)->seconds * 1.1;
  EXPECT_NEAR(run.StepSeconds(), seconds, 1e-9);
  EXPECT_NEAR(run.LeastStepSeconds(), seconds, 1e-9);
  EXPECT_NEAR(run.MostStepSeconds(), seconds * 1.5, 1e-9);
  EXPECT_NEAR(run.WaitSeconds(), seconds * 0.9, 1e-9);
}

TEST(ExchangeResults, BytesOfALinkAreOfAStepAndOfItsBusierDirection) {
  ExchangeResults results = SampleExchangeResults();
  ExchangeRun run = Found(results, "servers:1");
  EXPECT_NEAR(*run.HostSentBytes(0), 4 * 4e6 * 1.05, 1) << "the server is on the first host";
  EXPECT_NEAR(*run.HostSentBytes(1), 4e6 * 1.05, 1);
  EXPECT_NEAR(*run.BusiestBytes(), 16e6 * 1.05, 1);
  run.hosts[2].received_bytes = 10 * 17'000'000;
  EXPECT_DOUBLE_EQ(*run.BusiestBytes(), 17e6);
  EXPECT_FALSE(run.HostSentBytes(5).has_value());
  EXPECT_FALSE(Found(results, "servers:1", "none").BusiestBytes().has_value());
}

TEST(ExchangeResults, AModelOfAJobIsAsBigAsWhatAWorkerPushes) {
  ExchangeRun run = Found(SampleExchangeResults(), "ring");
  run.planned_bytes = 0;
  for (StepPoint& point : run.figures.steps) point.pushed_bytes = 4 * 5000;
  EXPECT_DOUBLE_EQ(run.ModelBytes(), 5000);
  run.figures = {};
  EXPECT_TRUE(std::isnan(run.ModelBytes()));
}

TEST(ExchangeResults, HeldIsOfTheNodeThatHoldsMost) {
  ExchangeRun run = Found(SampleExchangeResults(), "zero1");
  EXPECT_EQ(run.WorkerHeld()->total(), 8e6);
  EXPECT_EQ(run.ServerHeld()->total(), 4e6);
  run.figures.nodes[2].held.sums += 5;
  EXPECT_EQ(run.ServerHeld()->total(), 4e6 + 5);
  run.figures.nodes.clear();
  EXPECT_FALSE(run.WorkerHeld().has_value());
}

TEST(ExchangeResults, NothingIsPredictedWithoutALink) {
  const ExchangeResults results = SampleExchangeResults();
  EXPECT_FALSE(results.CostOf("none").has_value());
  EXPECT_FALSE(results.CostOf(Found(results, "ring", "none")).has_value());
  EXPECT_NEAR(1 / results.CostOf("200mbit")->beta, 25e6 * 1448 / 1514, 1);
}

}  // namespace
}  // namespace tug
