// SPDX-License-Identifier: Apache-2.0
#include "worker/core/local_steps.h"

#include <gtest/gtest.h>

#include <vector>

namespace tug {
namespace {

constexpr uint64_t kElements = 3000;

// One block with a matrix, which decays, and a bias; several segments.
SegmentTable Table() {
  BlockTable blocks;
  BlockSpec* block = blocks.add_blocks();
  TensorSpec* matrix = block->add_tensors();
  matrix->add_shape(kElements - 500);
  matrix->set_weight_decay(true);
  block->add_tensors()->add_shape(500);
  return *SegmentTable::Create(blocks, 1024);
}

JobConfig Job(OptimizerConfig::Algorithm algorithm) {
  JobConfig config;
  config.mutable_sync()->set_local_steps(4);
  OptimizerConfig& optimizer = *config.mutable_optimizer();
  optimizer.set_algorithm(algorithm);
  optimizer.set_learning_rate(0.1);
  optimizer.set_min_learning_rate(0.01);
  optimizer.set_warmup_steps(2);
  optimizer.set_decay_steps(10);
  optimizer.mutable_adamw()->set_beta1(0.9);
  optimizer.mutable_adamw()->set_beta2(0.99);
  optimizer.mutable_adamw()->set_epsilon(1e-8);
  optimizer.mutable_adamw()->set_weight_decay(0.1);
  optimizer.mutable_sgd()->set_momentum(0.9);
  return config;
}

std::vector<float> Numbers(float scale) {
  std::vector<float> numbers(kElements);
  for (size_t i = 0; i < kElements; ++i) numbers[i] = scale * (static_cast<float>(i % 17) - 8);
  return numbers;
}

// Compares with one optimizer per part, from the start.
TEST(LocalSteps, GoesOnFromItsOwnWeightsAndStateAtPositionsBetweenSteps) {
  const SegmentTable table = Table();
  for (auto algorithm : {OptimizerConfig::ADAMW, OptimizerConfig::SGD}) {
    const JobConfig config = Job(algorithm);
    LocalSteps local(config, table, 2);
    const auto optimizer = MakeOptimizer(config.optimizer());
    std::vector<float> m(optimizer->keeps_m() ? kElements : 0);
    std::vector<float> v(optimizer->keeps_v() ? kElements : 0);
    uint64_t t = 0;
    for (uint64_t clock = 3; clock < 5; ++clock) {
      const std::vector<float> start = Numbers(0.01f * static_cast<float>(clock));
      std::vector<float> weights = start;
      for (uint32_t h = 0; h < 4; ++h) {
        const std::vector<float> gradient = Numbers(static_cast<float>(h) - 1.5f);
        local.Update(1, 0, {clock, h, 0.25f}, gradient, start);
        const auto part = [&](std::vector<float>& x, size_t begin, size_t count) {
          return x.empty() ? std::span<float>() : std::span(x).subspan(begin, count);
        };
        for (const auto& [begin, count] :
             {std::pair<size_t, size_t>{0, kElements - 500}, {kElements - 500, 500}}) {
          optimizer->Update({.t = t,
                             .position = static_cast<double>(clock) + h / 4.0,
                             .weight_decay = begin == 0,
                             .gradient_scale = 0.25f},
                            {.gradient = std::span(gradient).subspan(begin, count),
                             .weights_in = part(weights, begin, count),
                             .weights_out = part(weights, begin, count),
                             .m = part(m, begin, count),
                             .v = part(v, begin, count)});
        }
        ++t;
        const std::span<const float> actual = local.Weights(1, 0);
        EXPECT_EQ(std::vector<float>(actual.begin(), actual.end()), weights);
      }
      std::vector<float> difference(kElements);
      local.Difference(1, 0, start, difference);
      for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(difference[i], start[i] - weights[i]);
    }
  }
}

TEST(LocalSteps, AGradientThatIsNotFiniteChangesNothing) {
  const SegmentTable table = Table();
  LocalSteps local(Job(OptimizerConfig::ADAMW), table, 1);
  const std::vector<float> start = Numbers(0.5f);
  local.Update(0, 0, {7, 0, std::nullopt}, Numbers(1), start);
  std::vector<float> difference(kElements, 1.0f);
  local.Difference(0, 0, start, difference);
  EXPECT_EQ(difference, std::vector<float>(kElements, 0.0f));
  local.Update(0, 0, {7, 1, 0.25f}, Numbers(1), start);
  const std::span<const float> weights = local.Weights(0, 0);
  const std::vector<float> before(weights.begin(), weights.end());
  EXPECT_NE(before, start);
  local.Update(0, 0, {7, 2, std::nullopt}, Numbers(1), start);
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()), before);
}

}  // namespace
}  // namespace tug
