// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/run_figures.h"

#include <cmath>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/metrics.jsonl";
  std::ofstream(path) << text;
  return path;
}

constexpr char kMetrics[] = R"(
{"kind":"step","step":1,"loss":3.5,"at_seconds":10.5,"seconds":0.5}
{"kind":"notice","text":"step"}
{"kind":"step","step":3,"loss":null,"at_seconds":12.5,"seconds":0.5}
{"kind":"step","step":2,"loss":3.25,"at_seconds":11.5,"seconds":0.75,"mean_seconds":0.625,"mean_wait_seconds":0.25,"overlap":0.5,"pushed_bytes":100,"pulled_bytes":50}
{"kind":"eval","step":3,"loss":3.0,"at_seconds":12.75}
{"kind":"eval","step":3,"loss":2.75,"at_seconds":13,"final":true}
{"kind":"worker","virtual_worker":1,"steps":3,"skipped":1,"seconds":4,"compute_seconds":1,"wait_seconds":2,"straggle_seconds":0.5}
{"kind":"worker","virtual_worker":0,"steps":3,"seconds":4}
{"kind":"node","node":"worker-0","role":"worker","weight_bytes":16,"gradient_bytes":8,"predicted_held_bytes":25}
{"kind":"node","node":"server-0","role":"server","weight_bytes":32,"optimizer_bytes":30,"sum_bytes":20,"cached_bytes":10}
)";
constexpr char kEnd[] =
    R"({"kind":"end","step":3,"updates":12,"staleness":[6,4,0,2,0],"dropped_pushes":3,"worker_socket_bytes":70,"server_socket_bytes":80,"encode_seconds":1.5})";

TEST(RunFigures, ReadsStepsEvaluationsWorkersAndUpdates) {
  const auto figures = ReadRunFigures(Written(std::string(kMetrics) + kEnd + "\n{\"cut"));
  ASSERT_TRUE(figures.ok()) << figures.status();
  ASSERT_EQ(figures->steps.size(), 3u);
  EXPECT_DOUBLE_EQ(figures->steps[0].seconds, 0.5) << "from the beginning of the first step";
  EXPECT_EQ(figures->steps[2].step, 3u);
  EXPECT_TRUE(std::isnan(figures->steps[2].loss));
  EXPECT_EQ(figures->steps[1].step_seconds, 0.75);
  EXPECT_EQ(figures->steps[1].mean_seconds, 0.625);
  EXPECT_EQ(figures->steps[1].wait_seconds, 0.25);
  EXPECT_EQ(figures->steps[1].overlap, 0.5);
  EXPECT_EQ(figures->steps[1].pushed_bytes, 100u);
  EXPECT_EQ(figures->steps[1].pulled_bytes, 50u);
  EXPECT_EQ(figures->worker_socket_bytes, 70u);
  EXPECT_EQ(figures->server_socket_bytes, 80u);
  EXPECT_EQ(figures->encode_seconds, 1.5);
  EXPECT_EQ(figures->decode_seconds, 0) << "not measured";
  ASSERT_EQ(figures->evals.size(), 2u);
  EXPECT_FALSE(figures->evals[0].final);
  EXPECT_TRUE(figures->evals[1].final);
  EXPECT_DOUBLE_EQ(figures->evals[1].seconds, 3);
  ASSERT_EQ(figures->workers.size(), 2u);
  EXPECT_EQ(figures->workers[1].virtual_worker, 1u);
  EXPECT_EQ(figures->workers[1].skipped, 1u);
  EXPECT_EQ(figures->workers[1].straggle_seconds, 0.5);
  ASSERT_EQ(figures->nodes.size(), 2u);
  EXPECT_EQ(figures->nodes[0].name, "server-0");
  EXPECT_TRUE(figures->nodes[0].server);
  EXPECT_EQ(figures->nodes[0].held.optimizer, 30u);
  EXPECT_EQ(figures->nodes[0].held.cached, 10u);
  EXPECT_EQ(figures->nodes[0].held.total(), 92u);
  EXPECT_EQ(figures->nodes[0].held.predicted, 0u);
  EXPECT_FALSE(figures->nodes[1].server);
  EXPECT_EQ(figures->nodes[1].held.gradients, 8u);
  EXPECT_EQ(figures->nodes[1].held.predicted, 25u);
  EXPECT_EQ(figures->updates, 12u);
  EXPECT_EQ(figures->dropped_pushes, 3u);
  EXPECT_THAT(figures->staleness, ElementsAre(6, 4, 0, 2, 0));
  EXPECT_DOUBLE_EQ(MeanStaleness(*figures), (4 + 6) / 12.0);
  EXPECT_EQ(MostStaleness(*figures), 3u);
}

TEST(RunFigures, KeepsSettledScheduleUntilTuningRestarts) {
  const auto settled = [](const std::string& more) {
    const auto figures = ReadRunFigures(
        Written(std::string(kMetrics) + R"({"kind":"trial","step":8,"partition_bytes":1})" + "\n" +
                R"({"kind":"settled","step":9,"partition_bytes":32768,"credit_bytes":65536})" +
                "\n" + more + "\n" + kEnd));
    EXPECT_TRUE(figures.ok()) << figures.status();
    return figures->settled;
  };
  ASSERT_TRUE(settled("").has_value());
  EXPECT_EQ(settled("")->step, 9u);
  EXPECT_EQ(settled("")->partition_bytes, 32768u);
  EXPECT_EQ(settled("")->credit_bytes, 65536u);
  EXPECT_FALSE(settled(R"({"kind":"trial","step":12})").has_value());
  EXPECT_FALSE(settled(R"({"kind":"notice","text":"steps take 3 ms: tuning again"})").has_value());
}

TEST(RunFigures, RateIsFromTheStepAfterWarmUpToTheLast) {
  RunFigures figures;
  EXPECT_EQ(StepRate(figures, 0), 0);
  figures.steps = {{1, 4.0, 0}, {2, 5.0, 0}, {3, 5.5, 0}, {4, 6.0, 0}};
  EXPECT_DOUBLE_EQ(StepRate(figures, 2), 2.0);
  EXPECT_DOUBLE_EQ(StepRate(figures, 0), 2 / 1.5) << "the first step's own time is not known";
  EXPECT_DOUBLE_EQ(StepRate(figures, 9), 2 / 1.5) << "too few steps for the warm-up";
  figures.steps = {{1, 4.0, 0}, {2, 4.0, 0}};
  EXPECT_DOUBLE_EQ(StepRate(figures, 0), 0.5) << "heard of at once";
  // A worker reports late that it skipped steps.
  figures.steps = {{1, 4.0, 0},  {2, 8.0, 0},  {3, 8.0, 0},  {4, 8.001, 0}, {5, 8.001, 0},
                   {6, 12.0, 0}, {7, 12.0, 0}, {8, 12.0, 0}, {9, 12.0, 0},  {10, 19.0, 0}};
  EXPECT_DOUBLE_EQ(StepRate(figures, 0), 1.0);
  EXPECT_NEAR(StepRate(figures, 2), 1.0, 1e-3);
}

TEST(RunFigures, AJobThatDidNotEndIsRefused) {
  EXPECT_THAT(std::string(ReadRunFigures(Written(kMetrics)).status().message()),
              HasSubstr("the job has not ended"));
  EXPECT_EQ(ReadRunFigures("/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tug
