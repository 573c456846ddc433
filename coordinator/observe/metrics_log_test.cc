// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/metrics_log.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::string Fresh(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

StepMetrics Step(uint64_t step, double loss) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = loss;
  metrics.tokens = 100;
  metrics.seconds = 0.5;
  return metrics;
}

TEST(MetricsLog, WritesOneObjectALineAndReadsItBack) {
  const std::string path = Fresh("metrics.jsonl");
  auto log = MetricsLog::Open(path, 1);
  ASSERT_TRUE(log.ok()) << log.status();
  log->Step(Step(1, 4.5), 7.5);
  log->Eval({.version = 1, .loss = 4.25, .accuracy = 0.5, .targets = 10}, 8.5);
  log->Checkpoint(1, "step-00000001", 0.003, 0.1);
  log->Notice("not \xff UTF-8, \"quoted\"");
  ASSERT_TRUE(log->Flush().ok());

  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(
      line,
      R"({"kind":"step","timeline":1,"step":1,"at_seconds":7.5,"loss":4.5,"tokens":100,"seconds":0.5,)"
      R"("tokens_per_second":200.0,"wait_seconds":0.0,"pushed_bytes":0,"pulled_bytes":0,)"
      R"("compute_seconds":0.0,"communication_seconds":0.0,"overlap":1.0,)"
      R"("mean_seconds":0.0,"mean_wait_seconds":0.0})");
  std::getline(file, line);
  EXPECT_THAT(
      line,
      ::testing::StartsWith(
          R"({"kind":"eval","timeline":1,"step":1,"at_seconds":8.5,"loss":4.25,"perplexity":70.1)"));
  EXPECT_THAT(line, ::testing::EndsWith(R"("accuracy":0.5,"targets":10})"));
  const auto curve = ReadLossCurve(path);
  ASSERT_TRUE(curve.ok());
  ASSERT_EQ(curve->training.size(), 1u);
  ASSERT_EQ(curve->validation.size(), 1u);
  EXPECT_EQ(curve->validation[0].loss, 4.25);
}

TEST(MetricsLog, SaysHowEachWorkerSpentItsSteps) {
  const std::string path = Fresh("workers.jsonl");
  auto log = MetricsLog::Open(path, 1);
  ASSERT_TRUE(log.ok()) << log.status();
  WorkerTotals workers;
  StepMetrics step = Step(1, 4);
  step.workers = {{.virtual_worker = 1,
                   .seconds = 2,
                   .compute_seconds = 1,
                   .wait_seconds = 0.5,
                   .straggle_seconds = 0.25},
                  {.virtual_worker = 0, .skipped = true}};
  workers.Add(step);
  workers.Add(step);
  log->Workers(workers);
  ASSERT_TRUE(log->Flush().ok());
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(
      line,
      R"({"kind":"worker","timeline":1,"virtual_worker":0,"steps":2,"skipped":2,"seconds":0.0,)"
      R"("compute_seconds":0.0,"wait_seconds":0.0,"straggle_seconds":0.0})");
  std::getline(file, line);
  EXPECT_EQ(
      line,
      R"({"kind":"worker","timeline":1,"virtual_worker":1,"steps":2,"skipped":0,"seconds":4.0,)"
      R"("compute_seconds":2.0,"wait_seconds":1.0,"straggle_seconds":0.5})");
}

TEST(MetricsLog, LaterLineOfAStepCountsAfterAResume) {
  const std::string path = Fresh("resumed.jsonl");
  {
    auto log = MetricsLog::Open(path, 1);
    log->Step(Step(1, 4), 7.5);
    log->Step(Step(2, 3), 7.5);
    ASSERT_TRUE(log->Flush().ok());
  }
  std::ofstream(path, std::ios::app) << "{\"kind\":\"step\",\"step\":3,\"lo\n";
  auto log = MetricsLog::Open(path, 2);
  log->Step(Step(2, 2.5), 7.5);
  log->Step(Step(3, std::numeric_limits<double>::quiet_NaN()), 7.5);
  ASSERT_TRUE(log->Flush().ok());
  const auto curve = ReadLossCurve(path);
  ASSERT_TRUE(curve.ok());
  ASSERT_EQ(curve->training.size(), 2u);
  EXPECT_EQ(curve->training[1].loss, 2.5);
}

TEST(MetricsLog, KeepsTheChangesOfSettingsThatHold) {
  const std::string path = Fresh("settings.jsonl");
  auto log = MetricsLog::Open(path, 2);
  ASSERT_TRUE(log.ok()) << log.status();
  log->Settings({50, {"train.steps 60 -> 90", "seed 1 -> 2"}});
  log->Settings({80, {"train.steps 90 -> 120"}});
  ASSERT_TRUE(log->Flush().ok());
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, R"({"kind":"settings","timeline":2,"step":50,)"
                  R"("changed":["train.steps 60 -> 90","seed 1 -> 2"]})");
  const auto steps = [&] {
    const auto curve = ReadLossCurve(path);
    std::vector<uint64_t> found;
    for (const SettingsChange& change : curve->settings) found.push_back(change.step);
    return found;
  };
  EXPECT_THAT(steps(), ::testing::ElementsAre(50, 80));
  EXPECT_EQ(ReadLossCurve(path)->settings[0].changed.size(), 2u);
  log->Settings({80, {}});  // resumed from the same step, with the settings of its checkpoint
  std::ofstream(path, std::ios::app) << "{\"kind\":\"settings\",\"step\":90}\n";
  ASSERT_TRUE(log->Flush().ok());
  EXPECT_THAT(steps(), ::testing::ElementsAre(50));
}

// A kill or a full disk may cut off the last line anywhere.
TEST(MetricsLog, AResumedRunBeginsALine) {
  const std::string path = Fresh("torn.jsonl");
  const auto say = [&](uint32_t timeline, uint64_t step) {
    auto log = MetricsLog::Open(path, timeline);
    ASSERT_TRUE(log.ok()) << log.status();
    log->Step(Step(step, 4), 7.5);
    ASSERT_TRUE(log->Flush().ok());
  };
  say(1, 1);
  const uint64_t whole_bytes = std::filesystem::file_size(path);
  for (const uint64_t size : {whole_bytes + 1, whole_bytes + 25, 2 * whole_bytes - 1}) {
    say(1, 2);
    std::filesystem::resize_file(path, size);
    say(2, 2);
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    std::getline(file, line);
    EXPECT_THAT(line, ::testing::StartsWith(R"({"kind":"step","timeline":2,"step":2,)")) << size;
    EXPECT_FALSE(std::getline(file, line)) << line;
    std::filesystem::resize_file(path, whole_bytes);
  }
}

TEST(MetricsLog, KeepsTheLastEvaluationOfAJobBesideTheSampledOneOfItsStep) {
  const std::string path = Fresh("evaluations.jsonl");
  auto log = MetricsLog::Open(path, 1);
  ASSERT_TRUE(log.ok()) << log.status();
  log->Step(Step(10, 5), 7.5);
  log->Eval({.version = 10, .loss = 5}, 8.5);
  log->Eval({.version = 20, .loss = 4}, 8.5);
  log->Eval({.version = 20, .loss = 3, .final = true}, 8.5);
  log->Eval({.version = 30, .loss = std::numeric_limits<double>::quiet_NaN()}, 8.5);
  log->Eval({.version = 10, .loss = 4.5}, 8.5);  // repeated step
  ASSERT_TRUE(log->Flush().ok());
  const auto evals = ReadEvaluations(path);
  ASSERT_TRUE(evals.ok()) << evals.status();
  ASSERT_EQ(evals->size(), 4u);
  EXPECT_EQ((*evals)[0].loss, 4.5);
  EXPECT_EQ((*evals)[1].loss, 4);
  EXPECT_FALSE((*evals)[1].final);
  EXPECT_EQ((*evals)[2].version, 20u);
  EXPECT_EQ((*evals)[2].loss, 3);
  EXPECT_TRUE((*evals)[2].final);
  EXPECT_EQ((*evals)[3].version, 30u);
  EXPECT_TRUE(std::isnan((*evals)[3].loss));
  const auto curve = ReadLossCurve(path);
  ASSERT_TRUE(curve.ok());
  EXPECT_EQ(curve->validation.size(), 2u) << "one a step, finite ones only";
}

TEST(MetricsLog, NamesTheFileItCannotWrite) {
  const auto log = MetricsLog::Open("/no/such/folder/metrics.jsonl", 1);
  EXPECT_THAT(std::string(log.status().message()),
              ::testing::HasSubstr("/no/such/folder/metrics.jsonl"));
}

TEST(MetricsLog, EndsWithWhatNodesGaveToSocketsAndWhatEncodingTook) {
  StatusReply status;
  for (const NodeKind kind : {SERVER, WORKER, WORKER}) {
    NodeStatus& node = *status.add_nodes();
    node.set_kind(kind);
    node.mutable_counters()->set_socket_bytes(kind == SERVER ? 500 : 30);
    if (kind == WORKER) node.mutable_counters()->set_encode_seconds(0.25);
  }
  const std::string path = Fresh("traffic.jsonl");
  auto log = MetricsLog::Open(path, 1);
  ASSERT_TRUE(log.ok()) << log.status();
  log->End(status, SyncConfig(), "done");
  ASSERT_TRUE(log->Flush().ok());
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, ::testing::HasSubstr(R"("worker_socket_bytes":60,"server_socket_bytes":500,)"
                                         R"("encode_seconds":0.5})"))
      << "decoding was not measured";
}

TEST(MetricsLog, SaysWhatEachNodeHeldForTraining) {
  StatusReply status;
  NodeStatus& server = *status.add_nodes();
  server.set_kind(SERVER);
  server.set_name("server-0");
  server.mutable_counters()->set_socket_bytes(500);
  server.mutable_counters()->set_weight_bytes(80);
  server.mutable_counters()->set_optimizer_bytes(70);
  server.mutable_counters()->set_sum_bytes(60);
  server.mutable_counters()->set_cached_bytes(50);
  server.mutable_counters()->set_predicted_held_bytes(215);
  NodeStatus& worker = *status.add_nodes();
  worker.set_kind(WORKER);
  worker.set_name("worker-0");
  worker.mutable_counters()->set_gradient_bytes(40);
  const std::string path = Fresh("nodes.jsonl");
  auto log = MetricsLog::Open(path, 1);
  ASSERT_TRUE(log.ok()) << log.status();
  log->Nodes(status);
  ASSERT_TRUE(log->Flush().ok());
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(
      line,
      R"({"kind":"node","timeline":1,"node":"server-0","role":"server","socket_bytes":500,)"
      R"("weight_bytes":80,"optimizer_bytes":70,"sum_bytes":60,"cached_bytes":50,"predicted_held_bytes":215})");
  std::getline(file, line);
  EXPECT_EQ(line,
            R"({"kind":"node","timeline":1,"node":"worker-0","role":"worker","socket_bytes":0,)"
            R"("gradient_bytes":40})");
}

TEST(MetricsLog, ReportsAFullDisk) {
  auto log = MetricsLog::Open("/dev/full", 1);
  ASSERT_TRUE(log.ok());
  log->Step(Step(1, 1), 7.5);
  EXPECT_THAT(std::string(log->Flush().message()), ::testing::HasSubstr("No space left"));
  EXPECT_FALSE(log->Flush().ok());
}

TEST(MetricsLog, GoesOnWhereAProcessThatDiedStopped) {
  const std::string path = Fresh("continued.jsonl");
  const auto say = [](MetricsLog& log, int steps) {
    for (int step = 1; step <= steps; ++step) log.Step(Step(static_cast<uint64_t>(step), 1), 0);
    ASSERT_TRUE(log.Flush().ok());
  };
  auto before = MetricsLog::Open(path, 1);
  before->Notice("of a run before");
  ASSERT_TRUE(before->Flush().ok());
  const uint64_t from_bytes = std::filesystem::file_size(path);
  say(*before, 2);
  // A recovered coordinator logs its steps again, but not the critical paths.
  const std::vector<StepPath> paths = {{.clock = 0, .end_ns = 1},
                                       {.clock = 1, .begin_ns = 1, .end_ns = 2}};
  before->CriticalPaths(paths);
  for (uint64_t step = 3; step <= 4; ++step) before->Step(Step(step, 1), 0);
  ASSERT_TRUE(before->Flush().ok());
  const uint64_t whole_bytes = std::filesystem::file_size(path);
  auto whole = MetricsLog::Continue(path, 1, from_bytes);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->is_behind());
  whole->CriticalPaths(paths);
  say(*whole, 4);
  EXPECT_FALSE(whole->is_behind());
  EXPECT_EQ(std::filesystem::file_size(path), whole_bytes) << "nothing was written again";

  // The last line may end anywhere.
  for (uint64_t size = whole_bytes - 1; size > whole_bytes - 150; size -= 7) {
    std::filesystem::resize_file(path, size);
    auto log = MetricsLog::Continue(path, 1, from_bytes);
    ASSERT_TRUE(log.ok()) << log.status();
    say(*log, 4);
    EXPECT_EQ(std::filesystem::file_size(path), whole_bytes) << size;
    EXPECT_EQ(ReadLossCurve(path)->training.size(), 4u);
  }
}

}  // namespace
}  // namespace tug
