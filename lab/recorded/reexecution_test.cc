// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/reexecution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/sgd.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kWorkers = 3;
constexpr uint64_t kElements = 2048;  // of a block, which has two segments

BlockTable Blocks() {
  BlockTable table;
  for (const char* name : {"a", "b"}) {
    BlockSpec* block = table.add_blocks();
    block->set_name(name);
    TensorSpec* tensor = block->add_tensors();
    tensor->set_name("w");
    tensor->add_shape(kElements);
  }
  return table;
}

JobConfig Config(const std::vector<std::string>& overrides = {}) {
  const auto config = ParseJobConfig(
      "model { external: true } cluster { workers: 3 } comm { segment_elements: 1024 } "
      "optimizer { clip: OFF } sync { policy: ASP } train { steps: 50 }",
      "test", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(JobConfig());
}

// Stands for a gradient: a function of virtual worker, clock and all weights.
PushedGradient Gradient(uint32_t virtual_worker, uint64_t clock,
                        std::span<const std::span<const float>> weights) {
  PushedGradient pushed{.token_count = 2 + virtual_worker};
  float sum = 0;
  for (const auto& block : weights) {
    for (const float w : block) sum = sum * 0.999f + w;
  }
  for (const auto& block : weights) {
    auto& gradient = pushed.blocks.emplace_back();
    for (const float w : block) {
      gradient.push_back(0.1f * w + 0.001f * sum +
                         static_cast<float>((clock * 7 + virtual_worker) % 5) - 2);
    }
  }
  return pushed;
}

std::vector<std::vector<float>> Start(const SegmentTable& table) {
  std::vector<std::vector<float>> start;
  for (uint32_t s = 0; s < table.size(); ++s) {
    start.emplace_back(table.segment(s).elements(), 0.5f + 0.1f * static_cast<float>(s));
  }
  return start;
}

// A run with its own order, made step by step as in an asynchronous job: a worker reads all
// segments, some of which are behind, and its gradient updates them some time later.
class AsynchronousRun {
 public:
  AsynchronousRun(const JobConfig& config, const SegmentTable& table, uint32_t seed)
      : config_(config), table_(table), random_(seed), logs_(1) {
    logs_[0].header = {
        .timeline = 1, .lanes = 1, .virtual_workers = kWorkers, .segments = table.size()};
    logs_[0].complete = true;
    versions_.assign(table.size(), 0);
  }

  std::vector<OrderLog> Make(int steps) {
    std::vector<uint64_t> clocks(kWorkers, 0);
    std::vector<std::vector<uint64_t>> read(kWorkers);
    std::vector<std::vector<uint32_t>> left(kWorkers);  // segments without the push
    for (int made = 0; made < steps;) {
      const uint32_t vw = random_() % kWorkers;
      if (read[vw].empty()) {
        read[vw] = versions_;
        for (uint32_t s = 0; s < table_.size(); ++s) left[vw].push_back(s);
      }
      std::shuffle(left[vw].begin(), left[vw].end(), random_);
      const uint32_t s = left[vw].back();
      left[vw].pop_back();
      logs_[0].records.push_back({.segment = s,
                                  .virtual_worker = vw,
                                  .clock = clocks[vw],
                                  .version = ++versions_[s],
                                  .weights_version = read[vw][s]});
      if (!left[vw].empty()) continue;
      read[vw].clear();
      ++clocks[vw];
      ++made;
    }
    // Complete the steps in progress.
    for (uint32_t vw = 0; vw < kWorkers; ++vw) {
      for (const uint32_t s : left[vw]) {
        logs_[0].records.push_back({.segment = s,
                                    .virtual_worker = vw,
                                    .clock = clocks[vw],
                                    .version = ++versions_[s],
                                    .weights_version = read[vw][s]});
      }
    }
    return logs_;
  }

 private:
  const JobConfig& config_;
  const SegmentTable& table_;
  std::mt19937 random_;
  std::vector<OrderLog> logs_;
  std::vector<uint64_t> versions_;
};

// The weights computed in the log's own order, keeping all versions.
std::vector<std::vector<float>> InLoggedOrder(const JobConfig& config, const SegmentTable& table,
                                              const std::vector<OrderLog>& logs) {
  const auto optimizer = MakeLaneOptimizer(config.optimizer(), config.sync());
  const auto run = AssembleRun(logs);
  std::vector<std::vector<std::vector<float>>> versions(table.size());
  const std::vector<std::vector<float>> start = Start(table);
  std::vector<std::vector<float>> m(table.size()), v(table.size());
  for (uint32_t s = 0; s < table.size(); ++s) {
    versions[s] = {start[s]};
    if (optimizer->keeps_m()) m[s].resize(start[s].size());
    if (optimizer->keeps_v()) v[s].resize(start[s].size());
  }
  for (const OrderRecord& record : logs[0].records) {
    const RecordedStep& step = run->steps[run->updates[record.segment][record.version - 1].step];
    std::vector<std::vector<float>> blocks(table.num_blocks());
    for (uint32_t s = 0; s < table.size(); ++s) {
      const auto& part = versions[s][step.weights_version[s]];
      auto& block = blocks[table.segment(s).block];
      block.insert(block.end(), part.begin(), part.end());
    }
    std::vector<std::span<const float>> views(blocks.begin(), blocks.end());
    const PushedGradient pushed = Gradient(record.virtual_worker, record.clock, views);
    const Segment& place = table.segment(record.segment);
    std::vector<float> next = versions[record.segment].back();
    const uint64_t staleness = record.version - 1 - record.weights_version;
    UpdateStep update{.t = record.version - 1,
                      .position = static_cast<double>(record.version - 1) / kWorkers,
                      .step_scale = 1.0f / static_cast<float>(std::max<uint64_t>(1, staleness)),
                      .weight_decay = place.weight_decay,
                      .gradient_scale = 1.0f / static_cast<float>(pushed.token_count)};
    std::vector<float> gradient(pushed.blocks[place.block].begin() + place.begin,
                                pushed.blocks[place.block].begin() + place.end);
    const double lambda = config.sync().delay_compensation();
    if (lambda > 0 && staleness > 0) {
      const auto& old = versions[record.segment][record.weights_version];
      kernels::CompensateDelay(static_cast<int64_t>(gradient.size()), static_cast<float>(lambda),
                               update.gradient_scale, gradient.data(), next.data(), old.data(),
                               gradient.data());
      update.gradient_scale = 1;
    }
    optimizer->Update(update, {.gradient = gradient,
                               .weights_in = next,
                               .weights_out = next,
                               .m = m[record.segment],
                               .v = v[record.segment]});
    versions[record.segment].push_back(next);
  }
  std::vector<std::vector<float>> last;
  for (auto& of_segment : versions) last.push_back(of_segment.back());
  return last;
}

TEST(Reexecution, GivesTheBitsOfTheRecordedOrder) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, {"optimizer.algorithm=SGD", "sync.delay_compensation=0.5"}}) {
    const JobConfig config = Config(overrides);
    const SegmentTable table = *SegmentTable::Create(Blocks(), 1024);
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", overrides ", overrides.size()));
      const std::vector<OrderLog> logs = AsynchronousRun(config, table, seed).Make(60);
      const auto run = AssembleRun(logs);
      ASSERT_TRUE(run.ok()) << run.status();
      Reexecution again(config, table, *run, Start(table), Gradient);
      size_t told = 0;
      const absl::Status done = again.Run([&](size_t updates) { told = updates; });
      ASSERT_TRUE(done.ok()) << done;
      EXPECT_EQ(told, run->update_count());
      const auto expected = InLoggedOrder(config, table, logs);
      for (uint32_t s = 0; s < table.size(); ++s) {
        for (size_t i = 0; i < expected[s].size(); ++i) {
          ASSERT_EQ(again.weights(s)[i], expected[s][i]) << "segment " << s << ", element " << i;
        }
      }
    }
  }
}

TEST(Reexecution, RefusesAnOrderThatCannotHaveBeen) {
  const JobConfig config = Config();
  const SegmentTable table = *SegmentTable::Create(Blocks(), 1024);
  // Each worker's gradient depends on the other's update.
  RecordedRun run{
      .virtual_workers = 2,
      .steps = {{0, 0, {0, 1, 0, 0}}, {1, 0, {1, 0, 0, 0}}},
      .updates = {{{0, 0}, {1, 1}}, {{1, 0}, {0, 1}}, {{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}}};
  Reexecution again(config, table, run, Start(table), Gradient);
  EXPECT_THAT(
      std::string(again.Run([](size_t) {}).message()),
      HasSubstr(
          "after 0 of 8 updates, every remaining gradient depends on weights not yet computed"));
}

TEST(Reexecution, AGradientThatCompensationMakesInfiniteChangesNothing) {
  const JobConfig config = Config({"optimizer.algorithm=SGD", "sync.delay_compensation=0.5"});
  const SegmentTable table = *SegmentTable::Create(Blocks(), 1024);
  const auto large = [](uint32_t vw, uint64_t clock,
                        std::span<const std::span<const float>> weights) {
    PushedGradient pushed = Gradient(vw, clock, weights);
    if (vw == 1) pushed.blocks[0][3] = 1e25f;
    return pushed;
  };
  RecordedRun run{.virtual_workers = 2,
                  .steps = {{0, 0, {0, 0, 0, 0}}, {1, 0, {0, 0, 0, 0}}},
                  .updates = {{{0, 0}, {1, 0, OrderRecord::kSkipped}},
                              {{0, 0}, {1, 0}},
                              {{0, 0}, {1, 0}},
                              {{0, 0}, {1, 0}}}};
  Reexecution again(config, table, run, Start(table), large);
  const absl::Status done = again.Run([](size_t) {});
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_TRUE(std::isfinite(again.weights(0)[3]));
  run.updates[0][1].flags = 0;
  Reexecution other(config, table, run, Start(table), large);
  EXPECT_THAT(std::string(other.Run([](size_t) {}).message()),
              HasSubstr("was finite when it was recorded, but is not now"));
}

// As recorded by a lane that gets a push late, after pushes of others that depend on its update.
TEST(Reexecution, DoesNotWaitForWeightsThatAStepDoesNotRead) {
  const JobConfig config = Config();
  const SegmentTable table = *SegmentTable::Create(Blocks(), 1024);
  RecordedRun run{.virtual_workers = 2,
                  .steps = {{0, 0, {0, kAnyVersion, 0, 0}}, {1, 0, {1, 0, 0, 0}}},
                  .updates = {{{0, 0}, {1, 1}},
                              {{1, 0}, {0, 1, OrderRecord::kUntouched}},
                              {{0, 0}, {1, 0}},
                              {{0, 0}, {1, 0}}}};
  Reexecution again(config, table, run, Start(table), Gradient);
  size_t told = 0;
  const absl::Status done = again.Run([&](size_t updates) { told = updates; });
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(told, 8u);
}

TEST(Reexecution, AGradientThatIsNotFiniteChangesNothingIfItDidNotThen) {
  const JobConfig config = Config();
  const SegmentTable table = *SegmentTable::Create(Blocks(), 1024);
  const auto not_finite = [](uint32_t vw, uint64_t clock,
                             std::span<const std::span<const float>> weights) {
    PushedGradient pushed = Gradient(vw, clock, weights);
    pushed.blocks[0][3] = std::numeric_limits<float>::infinity();
    return pushed;
  };
  RecordedRun run{.virtual_workers = 1,
                  .steps = {{0, 0, {0, 0, 0, 0}}},
                  .updates = {{{0, 0, OrderRecord::kSkipped}}, {{0, 0}}, {{0, 0}}, {{0, 0}}}};
  Reexecution again(config, table, run, Start(table), not_finite);
  ASSERT_TRUE(again.Run([](size_t) {}).ok());
  EXPECT_EQ(again.weights(0)[0], 0.5f);
  EXPECT_NE(again.weights(1)[0], 0.6f);
  run.updates[0][0].flags = 0;
  Reexecution other(config, table, run, Start(table), not_finite);
  EXPECT_THAT(std::string(other.Run([](size_t) {}).message()),
              HasSubstr("was finite when it was recorded, but is not now"));
}

}  // namespace
}  // namespace tug
