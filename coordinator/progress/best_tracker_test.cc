// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/best_tracker.h"

#include <limits>

#include "gtest/gtest.h"

namespace tug {
namespace {

EvalMetrics Eval(uint64_t version, double loss) {
  EvalMetrics eval;
  eval.version = version;
  eval.loss = loss;
  return eval;
}

JobConfig Config(bool keep_best = true) {
  JobConfig config;
  config.mutable_checkpoint()->set_keep_best(keep_best);
  config.mutable_train()->set_eval_interval(10);
  return config;
}

uint64_t VersionOf(const std::optional<BestCheckpoint>& best) {
  return best.has_value() ? best->version : 0;
}

TEST(BestTracker, MatchesEvaluationAndCheckpointInEitherOrder) {
  BestTracker tracker(Config(), std::nullopt);
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(10, 4))), 0u) << "no checkpoint of it yet";
  EXPECT_EQ(VersionOf(tracker.OnCommitted(10)), 10u);
  EXPECT_EQ(VersionOf(tracker.OnCommitted(20)), 0u);
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(20, 3))), 20u);
  EXPECT_EQ(VersionOf(tracker.OnCommitted(30)), 0u);
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(30, 3.5))), 0u) << "worse";
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(40, 1))), 0u) << "never saved";
  EXPECT_EQ(VersionOf(tracker.OnCommitted(45)), 0u) << "never evaluated";
}

TEST(BestTracker, HoldsACheckpointUntilItsEvaluationIsIn) {
  BestTracker tracker(Config(), std::nullopt);
  tracker.OnCommitted(10);
  tracker.OnCommitted(15);
  tracker.OnCommitted(20);
  EXPECT_EQ(tracker.HeldBeside(25), (std::vector<uint64_t>{10, 20})) << "15 is not evaluated";
  tracker.AddEval(Eval(10, 4));
  EXPECT_EQ(tracker.HeldBeside(25), std::vector<uint64_t>{20});
  tracker.AddEval(Eval(20, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(tracker.HeldBeside(25).empty());
}

TEST(BestTracker, KnowsTheBestOfTheRunThatGoesOn) {
  BestTracker tracker(Config(), BestCheckpoint{10, 3});
  tracker.OnCommitted(20);
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(20, 3.5))), 0u);
  tracker.OnCommitted(30);
  EXPECT_EQ(VersionOf(tracker.AddEval(Eval(30, 2.5))), 30u);
}

TEST(BestTracker, AnEvaluationOfTheWholeSplitTakesTheirPlace) {
  BestTracker tracker(Config(), std::nullopt);
  tracker.OnCommitted(10);
  tracker.AddEval(Eval(10, 3));
  const auto again = tracker.AddEval(Eval(10, 3.25));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->loss, 3.25);
}

TEST(BestTracker, DoesNothingWhereItIsNotWanted) {
  BestTracker tracker(Config(false), std::nullopt);
  tracker.OnCommitted(10);
  EXPECT_FALSE(tracker.AddEval(Eval(10, 3)).has_value());
  EXPECT_TRUE(tracker.HeldBeside(20).empty());
}

}  // namespace
}  // namespace tug
