// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "optimizer/learning_rate.h"

namespace tug {
namespace {

constexpr size_t kElements = 37;

OptimizerConfig Config(OptimizerConfig::Algorithm algorithm) {
  OptimizerConfig config;
  config.set_algorithm(algorithm);
  config.set_learning_rate(0.1);
  config.set_min_learning_rate(0.01);
  config.set_warmup_steps(2);
  config.set_decay_steps(20);
  config.mutable_adamw()->set_beta1(0.9);
  config.mutable_adamw()->set_beta2(0.99);
  config.mutable_adamw()->set_epsilon(1e-8);
  config.mutable_adamw()->set_weight_decay(0.1);
  config.mutable_sgd()->set_momentum(0.9);
  config.mutable_sgd()->set_weight_decay(0.1);
  return config;
}

struct Weights {
  explicit Weights(const Optimizer& optimizer)
      : w(kElements, 1.0f),
        m(optimizer.keeps_m() ? kElements : 0),
        v(optimizer.keeps_v() ? kElements : 0) {}

  UpdateSpans Spans(const std::vector<float>& gradient, size_t begin, size_t end) {
    const auto part = [&](std::vector<float>& all) {
      return all.empty() ? std::span<float>() : std::span(all).subspan(begin, end - begin);
    };
    return {.gradient = std::span(gradient).subspan(begin, end - begin),
            .weights_in = part(w),
            .weights_out = part(w),
            .m = part(m),
            .v = part(v)};
  }
  std::vector<float> w, m, v;
};

std::vector<float> Gradient(uint64_t step) {
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    gradient[i] = std::sin(static_cast<float>(i + 1) * static_cast<float>(step + 1));
  }
  return gradient;
}

// Properties of every optimizer in the table of optimizer.cc.
class EveryOptimizer : public testing::TestWithParam<int> {
 protected:
  const OptimizerConfig config_ = Config(static_cast<OptimizerConfig::Algorithm>(GetParam()));
  const std::unique_ptr<const Optimizer> optimizer_ = MakeOptimizer(config_);
};

TEST_P(EveryOptimizer, GivesTheSameBitsHoweverItsSpansAreCut) {
  Weights whole(*optimizer_), cut(*optimizer_);
  for (uint64_t t = 0; t < 5; ++t) {
    const UpdateStep step{.t = t, .position = 0.25 * static_cast<double>(t), .step_scale = 0.5f};
    const auto gradient = Gradient(t);
    optimizer_->Update(step, whole.Spans(gradient, 0, kElements));
    optimizer_->Update(step, cut.Spans(gradient, 0, 11));
    optimizer_->Update(step, cut.Spans(gradient, 11, kElements));
  }
  EXPECT_EQ(whole.w, cut.w);
  EXPECT_EQ(whole.m, cut.m);
  EXPECT_EQ(whole.v, cut.v);
}

TEST_P(EveryOptimizer, DecaysOnlyWhatItIsToldTo) {
  const std::vector<float> none(kElements);
  for (const bool decay : {false, true}) {
    Weights weights(*optimizer_);
    optimizer_->Update({.position = 5, .weight_decay = decay}, weights.Spans(none, 0, kElements));
    if (decay) {
      EXPECT_LT(weights.w[0], 1.0f);
    } else {
      EXPECT_EQ(weights.w[0], 1.0f);
    }
  }
}

TEST_P(EveryOptimizer, StepsByTheRateOfItsPositionTimesTheScaleOfItsStep) {
  const double step = 7.5;
  std::vector<float> moved;
  for (const float scale : {1.0f, 0.25f}) {
    Weights weights(*optimizer_);
    optimizer_->Update({.position = step, .step_scale = scale, .weight_decay = false},
                       weights.Spans(std::vector<float>(kElements, 1.0f), 0, kElements));
    moved.push_back(1.0f - weights.w[0]);
  }
  EXPECT_NEAR(moved[0], LearningRateAt(config_, step), 1e-6);
  EXPECT_NEAR(moved[1], moved[0] / 4, 1e-6);
}

TEST_P(EveryOptimizer, MultipliesTheGradientFirst) {
  Weights sum(*optimizer_), mean(*optimizer_);
  std::vector<float> gradient(kElements, 1.0f);
  optimizer_->Update({}, mean.Spans(gradient, 0, kElements));
  std::fill(gradient.begin(), gradient.end(), 64.0f);
  optimizer_->Update({.gradient_scale = 1.0f / 64}, sum.Spans(gradient, 0, kElements));
  EXPECT_EQ(sum.w, mean.w);
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         testing::Range(0, OptimizerConfig::Algorithm_MAX + 1));

TEST(Optimizer, AdamWLeavesVAloneFromItsStepOnAndIsThenLinearInTheGradients) {
  OptimizerConfig config = Config(OptimizerConfig::ADAMW);
  config.set_schedule(OptimizerConfig::CONSTANT);
  config.set_warmup_steps(0);
  config.mutable_adamw()->set_weight_decay(0);
  const auto never = MakeOptimizer(config);
  config.mutable_adamw()->set_freeze_v_after(3);
  const auto frozen = MakeOptimizer(config);
  for (const uint64_t updates_per_step : {1, 4}) {
    const auto step = [&](uint64_t t) {
      return UpdateStep{.t = t,
                        .position = static_cast<double>(t) / static_cast<double>(updates_per_step)};
    };
    Weights weights(*frozen), same(*never);
    uint64_t t = 0;
    for (; t < 3 * updates_per_step; ++t) {
      const auto gradient = Gradient(t);
      frozen->Update(step(t), weights.Spans(gradient, 0, kElements));
      never->Update(step(t), same.Spans(gradient, 0, kElements));
    }
    EXPECT_EQ(weights.w, same.w);
    EXPECT_EQ(weights.v, same.v);
    const std::vector<float> v = weights.v;
    // From m = 0 and w = 0, doubled gradients double the change.
    std::fill(weights.m.begin(), weights.m.end(), 0.0f);
    std::fill(weights.w.begin(), weights.w.end(), 0.0f);
    Weights twice = weights;
    for (; t < 8 * updates_per_step; ++t) {
      auto gradient = Gradient(t);
      frozen->Update(step(t), weights.Spans(gradient, 0, kElements));
      for (float& g : gradient) g *= 2;
      frozen->Update(step(t), twice.Spans(gradient, 0, kElements));
    }
    EXPECT_EQ(weights.v, v);
    EXPECT_EQ(twice.v, v);
    for (size_t i = 0; i < kElements; ++i) ASSERT_EQ(twice.w[i], 2 * weights.w[i]) << i;
  }
}

// With a constant gradient, the estimate of its mean square is constant, too.
TEST(Optimizer, AdamWStepsOnAsFarAsBeforeWhenItsVIsFrozen) {
  for (const uint64_t updates_per_step : {1, 3}) {
    OptimizerConfig config = Config(OptimizerConfig::ADAMW);
    config.set_schedule(OptimizerConfig::CONSTANT);
    config.set_warmup_steps(0);
    config.mutable_adamw()->set_weight_decay(0);
    config.mutable_adamw()->set_freeze_v_after(2);
    const auto adamw = MakeOptimizer(config);
    Weights weights(*adamw);
    const std::vector<float> gradient(kElements, 0.5f);
    for (uint64_t t = 0; t < 6 * updates_per_step; ++t) {
      const float before = weights.w[0];
      adamw->Update(
          {.t = t, .position = static_cast<double>(t) / static_cast<double>(updates_per_step)},
          weights.Spans(gradient, 0, kElements));
      EXPECT_NEAR(before - weights.w[0], 0.1, 1e-5) << "update " << t;
    }
  }
}

TEST(Optimizer, SgdKeepsOnlyTheMomentumThereIs) {
  OptimizerConfig config = Config(OptimizerConfig::SGD);
  EXPECT_TRUE(MakeOptimizer(config)->keeps_m());
  EXPECT_FALSE(MakeOptimizer(config)->keeps_v());
  config.mutable_sgd()->set_momentum(0);
  EXPECT_FALSE(MakeOptimizer(config)->keeps_m());
}

// The documented recurrence of torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.1), computed by
// hand from w = 1 with gradients 1 and 0.5.
TEST(Optimizer, SgdTakesTheStepsThatPyTorchTakes) {
  for (const bool nesterov : {false, true}) {
    OptimizerConfig config = Config(OptimizerConfig::SGD);
    config.mutable_sgd()->set_nesterov(nesterov);
    config.set_schedule(OptimizerConfig::CONSTANT);
    config.set_warmup_steps(0);
    const auto sgd = MakeOptimizer(config);
    std::vector<float> w = {1}, u = {0}, path;
    for (const float g : {1.0f, 0.5f}) {
      const std::vector<float> gradient = {g};
      sgd->Update({}, {.gradient = gradient, .weights_in = w, .weights_out = w, .m = u});
      path.push_back(w[0]);
    }
    EXPECT_NEAR(path[0], nesterov ? 0.791 : 0.89, 1e-6);
    EXPECT_NEAR(path[1], nesterov ? 0.591871 : 0.7321, 1e-6);
  }
}

TEST(Optimizer, LanesOfWorkersWithLocalStepsTakeTheOuterOne) {
  SyncConfig sync;
  sync.mutable_outer()->set_learning_rate(0.7);
  sync.mutable_outer()->set_momentum(0.9);
  sync.mutable_outer()->set_nesterov(true);
  EXPECT_TRUE(MakeLaneOptimizer(Config(OptimizerConfig::ADAMW), sync)->keeps_v());
  sync.set_local_steps(16);
  const auto outer = MakeLaneOptimizer(Config(OptimizerConfig::ADAMW), sync);
  EXPECT_FALSE(outer->keeps_v());
  Weights weights(*outer);
  // Two virtual workers moved 0.5 and 1.5 away from 1; the inner schedule would be past its decay.
  outer->Update({.t = 1000, .position = 1000, .gradient_scale = 0.5f},
                weights.Spans(std::vector<float>(kElements, 2.0f), 0, kElements));
  EXPECT_FLOAT_EQ(weights.w[0], 1.0f - 0.7f * (1.0f + 0.9f));
}

}  // namespace
}  // namespace tug
