// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/measure.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Ten steps of 4 samples, evaluated every five; two workers and a server.
MeasuredRun SampleRun() {
  MeasuredRun run{.warm_up_steps = 2, .wall_seconds = 3.5};
  run.config.mutable_train()->set_global_batch(4);
  for (uint64_t step = 1; step <= 10; ++step) {
    run.figures.steps.push_back({.step = step,
                                 .seconds = 0.1 * static_cast<double>(step),
                                 .loss = 5 - 0.1 * static_cast<double>(step),
                                 .step_seconds = step <= 2 ? 9 : 0.11,
                                 .mean_seconds = step <= 2 ? 9 : 0.1,
                                 .wait_seconds = step <= 2 ? 9 : 0.025,
                                 .overlap = step <= 2 ? 0 : 0.75,
                                 .pushed_bytes = 2'000'000,
                                 .pulled_bytes = 1'000'000,
                                 .tokens = 64});
  }
  run.figures.evals = {{5, 0.5, 4.0, false}, {10, 1.0, 3.0, false}, {10, 1.1, 3.5, true}};
  run.figures.workers = {{.steps = 10, .seconds = 1, .compute_seconds = 0.5, .wait_seconds = 0.25},
                         {.steps = 10, .seconds = 1, .compute_seconds = 0.7, .wait_seconds = 0.05}};
  run.figures.nodes = {{.name = "server-0", .server = true, .held = {.optimizer = 3'000'000}},
                       {.name = "worker-0", .held = {.weights = 1'000'000, .gradients = 500'000}}};
  run.figures.updates = 20;
  run.figures.staleness = {10, 10};
  run.figures.worker_socket_bytes = 30'000'000;
  run.figures.server_socket_bytes = 10'000'000;
  run.figures.encode_seconds = 0.02;
  run.links = {{25'000'000, 25'000'000}, {30'000'000, 40'000'000}};
  return run;
}

double ValueOf(const MeasuredRun& run, const char* name) {
  const Measure* measure = FindMeasure(name);
  EXPECT_NE(measure, nullptr) << name;
  const std::optional<double> value = measure->of(run);
  EXPECT_TRUE(value.has_value()) << name;
  return value.value_or(-1);
}

TEST(Measures, LeaveTheWarmUpOut) {
  MeasuredRun run = SampleRun();
  EXPECT_DOUBLE_EQ(ValueOf(run, "step_time"), 110);
  EXPECT_DOUBLE_EQ(ValueOf(run, "mean_step_time"), 100);
  EXPECT_DOUBLE_EQ(ValueOf(run, "exposed_time"), 25);
  EXPECT_DOUBLE_EQ(ValueOf(run, "overlap"), 75);
  EXPECT_NEAR(ValueOf(run, "batch_rate"), 10, 0.01);
  EXPECT_NEAR(ValueOf(run, "token_rate"), 640, 1);
  run.config.mutable_sync()->set_policy(SyncConfig::BSP);
  run.figures.steps.back().seconds = 0.9;  // as the coordinator learned of it
  EXPECT_NEAR(ValueOf(run, "batch_rate"), 10, 1e-9) << "by the clocks of workers";
  run.figures.steps.back().step_seconds = 0.4;  // of a worker that paused
  EXPECT_NEAR(ValueOf(run, "batch_rate"), 10, 1e-9) << "by the mean of their clocks";
}

TEST(Measures, SetARunBesideItsSlowWorker) {
  MeasuredRun run = SampleRun();
  run.config.mutable_sync()->set_policy(SyncConfig::BSP);
  EXPECT_NEAR(ValueOf(run, "update_rate"), 10, 1e-9);
  EXPECT_DOUBLE_EQ(ValueOf(run, "most_wait_share"), 25);
  run.config.set_compute(JobConfig::REPLAY);
  run.config.mutable_cluster()->set_workers(2);
  run.config.mutable_cluster()->set_virtual_workers(2);
  EXPECT_EQ(FindMeasure("straggler_pace")->of(run), std::nullopt) << "nobody is slow";
  run.config.mutable_straggler()->set_virtual_worker(1);
  run.config.mutable_straggler()->set_slowdown(2);
  run.figures.workers[1] = {.virtual_worker = 1,
                            .steps = 10,
                            .skipped = 2,
                            .seconds = 1,
                            .compute_seconds = 0.4,
                            .straggle_seconds = 0.32};
  EXPECT_NEAR(ValueOf(run, "straggler_pace"), 90, 1e-9) << "90 ms a step, and 10 steps a second";
  run.config.mutable_sync()->set_policy(SyncConfig::ASP);
  EXPECT_NEAR(ValueOf(run, "update_rate"), 20, 0.1) << "every push is one";
  EXPECT_EQ(FindMeasure("straggler_pace")->of(run), std::nullopt) << "nobody waits for it";
  run.config.mutable_sync()->set_policy(SyncConfig::SSP);
  EXPECT_NEAR(ValueOf(run, "straggler_pace"), 90, 0.5);
  run.config.mutable_cluster()->set_workers(1);
  EXPECT_EQ(FindMeasure("straggler_pace")->of(run), std::nullopt) << "it carries another one";
}

TEST(Measures, AreInTheirUnits) {
  const MeasuredRun run = SampleRun();
  EXPECT_DOUBLE_EQ(ValueOf(run, "wait_share"), 15);
  EXPECT_DOUBLE_EQ(ValueOf(run, "compute_share"), 60);
  EXPECT_DOUBLE_EQ(ValueOf(run, "pushed_bytes"), 2);
  EXPECT_DOUBLE_EQ(ValueOf(run, "pulled_bytes"), 1);
  EXPECT_DOUBLE_EQ(ValueOf(run, "socket_bytes"), 4);
  EXPECT_DOUBLE_EQ(ValueOf(run, "worker_socket_bytes"), 3);
  EXPECT_DOUBLE_EQ(ValueOf(run, "server_socket_bytes"), 1);
  EXPECT_DOUBLE_EQ(ValueOf(run, "link_bytes"), 7);
  EXPECT_DOUBLE_EQ(ValueOf(run, "one_way_bytes"), 4);
  EXPECT_DOUBLE_EQ(ValueOf(run, "worker_memory"), 1.5);
  EXPECT_DOUBLE_EQ(ValueOf(run, "server_memory"), 3);
  EXPECT_DOUBLE_EQ(ValueOf(run, "staleness"), 0.5);
  EXPECT_DOUBLE_EQ(ValueOf(run, "most_staleness"), 1);
  EXPECT_DOUBLE_EQ(ValueOf(run, "encode_time"), 2);
  EXPECT_EQ(FindMeasure("decode_time")->of(run), std::nullopt) << "nothing was";
  EXPECT_DOUBLE_EQ(ValueOf(run, "job_time"), 1);
  EXPECT_DOUBLE_EQ(ValueOf(run, "wall_time"), 3.5);
}

TEST(Measures, SayWhatWasLearned) {
  MeasuredRun run = SampleRun();
  EXPECT_DOUBLE_EQ(ValueOf(run, "final_loss"), 3.5);
  EXPECT_DOUBLE_EQ(ValueOf(run, "best_loss"), 3);
  EXPECT_DOUBLE_EQ(ValueOf(run, "training_loss"), 4);
  EXPECT_EQ(FindMeasure("loss_at_samples")->of(run), std::nullopt) << "it was not asked for";
  run.at_samples = 30;  // between 20 and 40
  EXPECT_DOUBLE_EQ(ValueOf(run, "loss_at_samples"), 3.5);
  run.at_samples = 20;
  EXPECT_DOUBLE_EQ(ValueOf(run, "loss_at_samples"), 4);
  run.at_samples = 10;
  EXPECT_EQ(FindMeasure("loss_at_samples")->of(run), std::nullopt) << "before any evaluation";
  run.target_loss = 3.2;
  EXPECT_DOUBLE_EQ(ValueOf(run, "time_to_loss"), 1);
  run.target_loss = 1;
  EXPECT_EQ(FindMeasure("time_to_loss")->of(run), std::nullopt) << "it was not reached";
}

TEST(Measures, ReplayHasNoLoss) {
  MeasuredRun run = SampleRun();
  run.config.set_compute(JobConfig::REPLAY);
  run.at_samples = 20;
  run.target_loss = 9;
  for (const char* name : {"token_rate", "final_loss", "best_loss", "training_loss",
                           "loss_at_samples", "time_to_loss"}) {
    EXPECT_EQ(FindMeasure(name)->of(run), std::nullopt) << name;
  }
}

TEST(Measures, AreDefinedOfARunWithNothingInIt) {
  for (const Measure& measure : Measures()) {
    static_cast<void>(measure.of(MeasuredRun{}));
    EXPECT_EQ(FindMeasure(measure.name), &measure);
  }
  EXPECT_EQ(FindMeasure("nothing"), nullptr);
}

TEST(Measures, HaveATitleAndAUnitForAxesAndColumns) {
  for (const Measure& measure : Measures()) {
    EXPECT_THAT(std::string(measure.title), Not(HasSubstr("_"))) << measure.name;
    EXPECT_STRNE(measure.unit, "") << measure.name;
  }
  EXPECT_EQ(MeasureHeading("final_loss"), "final loss (nats per token)");
}

TEST(Measures, CountSamplesOfBatchesAndLocalSteps) {
  JobConfig config;
  config.mutable_train()->set_global_batch(8);
  EXPECT_DOUBLE_EQ(SamplesAt(config, 3), 24);
  config.mutable_sync()->set_local_steps(4);
  EXPECT_DOUBLE_EQ(SamplesAt(config, 3), 96);
  config.mutable_sync()->set_local_steps(1);
  config.mutable_sync()->set_policy(SyncConfig::BACKUP);
  config.mutable_sync()->set_backups(1);
  config.mutable_cluster()->set_virtual_workers(4);
  EXPECT_DOUBLE_EQ(SamplesAt(config, 3), 18) << "one of four is too late";
}

// Each row of the table is a line of the page.
TEST(Measures, AreDescribedInTheDocument) {
  std::ifstream file("docs/experiment_files.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  for (const Measure& measure : Measures()) {
    EXPECT_THAT(text.str(), HasSubstr(std::string("| `") + measure.name + "` | " + measure.unit));
    EXPECT_THAT(text.str(), HasSubstr(measure.meaning));
  }
}

}  // namespace
}  // namespace tug
