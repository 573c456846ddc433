// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::IsEmpty;

StepMetrics Step(uint64_t step, double loss = 2) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = loss;
  metrics.tokens = 100;
  metrics.mean_seconds = 0.5;
  metrics.workers = {{.virtual_worker = 0, .seconds = 0.5, .compute_seconds = 0.4}};
  return metrics;
}

StatusReply WithNode(double rate) {
  StatusReply status;
  NodeStatus& node = *status.add_nodes();
  node.set_node_id(3);
  node.set_socket_bytes_per_second(rate);
  return status;
}

TEST(RunHistory, TellsAllAtFirstAndThenWhatIsNew) {
  RunHistory history;
  history.OnStep(Step(1), 1);
  history.OnEvent("checkpoint", 1.5);
  history.OnEval({.version = 1, .loss = 3});
  const RunHistory::News all = history.Since(0);
  EXPECT_TRUE(all.anew);
  ASSERT_EQ(all.points.size(), 1u);
  EXPECT_EQ(all.points[0].tokens, 100);
  ASSERT_EQ(all.events.size(), 1u);
  EXPECT_EQ(all.events[0].step, 1u);
  ASSERT_EQ(all.evals.size(), 1u);
  ASSERT_EQ(all.steps.size(), 1u);

  history.OnStep(Step(2), 2);
  const RunHistory::News news = history.Since(all.newest);
  EXPECT_FALSE(news.anew);
  ASSERT_EQ(news.points.size(), 1u);
  EXPECT_EQ(news.points[0].step, 2u);
  EXPECT_THAT(news.events, IsEmpty());
  EXPECT_THAT(history.Since(news.newest).points, IsEmpty());
  EXPECT_TRUE(history.Since(news.newest + 1).anew) << "of a coordinator before this one";
}

TEST(RunHistory, IsBoundedHoweverLongTheJob) {
  RunHistory history;
  for (uint64_t step = 1; step <= 50'000; ++step) {
    const auto at = static_cast<double>(step);
    history.OnStep(Step(step), at);
    history.OnEval({.version = step, .loss = at});
    history.OnEvent(std::string(10'000, 'x'), at);
    history.OnStatus(WithNode(at), at);
  }
  const RunHistory::News all = history.Since(0);
  EXPECT_LT(all.points.size(), RunHistory::kMaxPoints);
  EXPECT_GE(all.points.size(), RunHistory::kMaxPoints / 2 - 1);
  EXPECT_LE(all.evals.size(), RunHistory::kMaxEvals);
  EXPECT_EQ(all.evals.back().step, 50'000u);
  EXPECT_EQ(all.events.size(), RunHistory::kEventLimit);
  EXPECT_EQ(all.events.back().text.size(), RunHistory::kEventBytes);
  EXPECT_EQ(all.steps.size(), RunHistory::kSteps);
  EXPECT_EQ(all.links.size(), RunHistory::kLinkSamples);
}

// Accumulated results of Since always equal a full result.
TEST(RunHistory, IncrementalResultsAddUpToFullHistory) {
  RunHistory history;
  uint64_t seen = 0;
  std::vector<ThinnedCurve::Point> points;
  std::vector<RunHistory::Eval> evals;
  for (uint64_t step = 1; step <= 5'000; ++step) {
    const bool goes_back = step == 3'000;
    for (uint64_t again = goes_back ? 2'500 : step; again <= step; ++again) {
      history.OnStep(Step(again), static_cast<double>(step));
    }
    if (step % 7 == 0) history.OnEval({.version = step, .loss = 1});
    if (step % 13 != 0) continue;
    const RunHistory::News news = history.Since(seen);
    seen = news.newest;
    if (news.anew) points.clear(), evals.clear();
    points.insert(points.end(), news.points.begin(), news.points.end());
    evals.insert(evals.end(), news.evals.begin(), news.evals.end());
    const RunHistory::News all = history.Since(0);
    ASSERT_EQ(points, all.points) << step;
    ASSERT_EQ(evals.size(), all.evals.size()) << step;
  }
}

TEST(RunHistory, LinksAreSampledOnceASecond) {
  RunHistory history;
  for (int i = 0; i < 30; ++i) history.OnStatus(WithNode(i), 0.1 * i);
  const RunHistory::News all = history.Since(0);
  ASSERT_EQ(all.links.size(), 3u);
  EXPECT_EQ(all.links[1].nodes[0].node, 3u);
}

}  // namespace
}  // namespace tug
