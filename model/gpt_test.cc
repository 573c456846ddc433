#include "model/gpt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/thread_pool.h"
#include "model/layout.h"

namespace tug {
namespace {

constexpr uint32_t kSeed = 7;

ModelConfig SmallConfig(double dropout, bool tied = true) {
  ModelConfig config;
  config.set_layers(2);
  config.set_width(24);
  config.set_heads(3);
  config.set_context(10);
  config.set_dropout(dropout);
  config.set_tied_head(tied);
  config.set_bias(true);
  return config;
}

// A model with its weights, gradients and a batch, all from one seed.
class Rig {
 public:
  Rig(const ModelConfig& config, int samples, int threads = 1, uint32_t symbols = 19)
      : samples_(samples), context_(config.context()), pool_(threads) {
    auto gpt = Gpt::Create(config, symbols, samples, pool_);
    EXPECT_TRUE(gpt.ok()) << gpt.status();
    gpt_ = *std::move(gpt);
    std::mt19937 random(kSeed);
    std::normal_distribution<float> normal;
    for (const BlockSpec& block : gpt_->blocks().blocks()) {
      std::vector<float>& weights = weights_.emplace_back();
      for (const TensorSpec& tensor : block.tensors()) {
        for (uint64_t i = 0; i < ElementCount(tensor); ++i) {
          weights.push_back(tensor.init_mean() + 0.2f * normal(random));
        }
      }
      gradients_.emplace_back(weights.size(), std::nanf(""));
    }
    for (int b = 0; b < gpt_->num_blocks(); ++b) {
      gpt_->BindWeights(b, weights_[b]);
      gpt_->BindGradient(b, gradients_[b]);
    }
    random.seed(kSeed + 1);  // the same tokens for models with other parameters
    std::uniform_int_distribution<int32_t> symbol(0, static_cast<int32_t>(symbols) - 1);
    for (int i = 0; i < samples * context_; ++i) tokens_.push_back(symbol(random));
    for (int i = 0; i < samples * context_; ++i) targets_.push_back(symbol(random));
  }

  // Samples [first, first + count) of the batch, named so to dropout.
  MicroBatch Batch(int first, int count, bool training = true) const {
    MicroBatch batch;
    batch.samples = count;
    batch.tokens = std::span(tokens_).subspan(first * context_, count * context_);
    batch.targets = std::span(targets_).subspan(first * context_, count * context_);
    batch.training = training;
    batch.dropout = {.seed = kSeed, .step = 3, .first_sample = static_cast<uint32_t>(first)};
    return batch;
  }
  MicroBatch Batch() const { return Batch(0, samples_); }

  double Loss(const MicroBatch& batch) {
    gpt_->Start(batch);
    for (int b = 0; b < gpt_->num_blocks(); ++b) gpt_->Forward(b);
    return gpt_->loss_sum();
  }

  double LossAndGradient(const MicroBatch& batch) {
    const double loss = Loss(batch);
    for (int b = gpt_->num_blocks() - 1; b >= 0; --b) gpt_->Backward(b);
    return loss;
  }

  Gpt& gpt() { return *gpt_; }
  std::vector<std::vector<float>>& weights() { return weights_; }
  const std::vector<std::vector<float>>& gradients() const { return gradients_; }

 private:
  const int samples_, context_;
  ThreadPool pool_;
  std::unique_ptr<Gpt> gpt_;
  std::vector<std::vector<float>> weights_, gradients_;
  std::vector<int32_t> tokens_, targets_;
};

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

// |a - b| / |b| over all elements.
double Distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<float>>& b) {
  double difference = 0, scale = 0;
  for (size_t block = 0; block < a.size(); ++block) {
    for (size_t i = 0; i < a[block].size(); ++i) {
      difference += std::pow(double{a[block][i]} - double{b[block][i]}, 2);
      scale += std::pow(double{b[block][i]}, 2);
    }
  }
  return std::sqrt(difference / scale);
}

// The derivative of the loss along a tensor's own gradient, by central differences of fourth order,
// in parts of the gradient's norm, which it should equal: so 1 where all is right.
double DerivativeAlongGradient(Rig& rig, std::span<float> weights, std::span<const float> gradient,
                               double h) {
  const std::vector<float> saved(weights.begin(), weights.end());
  const double norm = Norm(gradient);
  const auto loss_at = [&](double distance) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(saved[i] + distance * gradient[i] / norm);
    }
    return rig.Loss(rig.Batch());
  };
  const double derivative =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  std::copy(saved.begin(), saved.end(), weights.begin());
  return derivative / norm;
}

// Measured: within 3e-5, and 2e-4 for the tensor with the least gradient; the rest is the rounding
// of FP32 losses, about 1e-7 of them, over a step of 0.02. (gpt_fixture_test.cc compares gradients
// with PyTorch's to seven digits.)
TEST(Gpt, GradientOfEveryTensorIsTheSlopeOfTheLoss) {
  for (const double dropout : {0.0, 0.25}) {
    for (const bool tied : {true, false}) {
      Rig rig(SmallConfig(dropout, tied), 3);
      rig.LossAndGradient(rig.Batch());
      const std::vector<std::vector<float>> gradients = rig.gradients();
      double worst = 0;
      for (int b = 0; b < rig.gpt().num_blocks(); ++b) {
        size_t offset = 0;
        for (const TensorSpec& tensor : rig.gpt().blocks().blocks(b).tensors()) {
          const size_t size = ElementCount(tensor);
          const double slope =
              DerivativeAlongGradient(rig, std::span(rig.weights()[b]).subspan(offset, size),
                                      std::span(gradients[b]).subspan(offset, size), 0.02);
          EXPECT_NEAR(slope, 1, 1e-3) << tensor.name() << " dropout " << dropout;
          worst = std::max(worst, std::abs(slope - 1));
          offset += size;
        }
      }
      std::cout << "dropout " << dropout << " tied " << tied << ": worst " << worst << "\n";
    }
  }
}

TEST(Gpt, MicroBatchesAddUpToTheBatch) {
  for (const bool tied : {true, false}) {
    Rig whole(SmallConfig(0.2, tied), 5), parts(SmallConfig(0.2, tied), 5);
    const double loss = whole.LossAndGradient(whole.Batch());
    double sum = 0;
    for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 2)}) {
      MicroBatch batch = parts.Batch(first, count);
      batch.accumulate = first > 0;
      sum += parts.LossAndGradient(batch);
    }
    EXPECT_NEAR(sum / loss, 1, 1e-6);
    EXPECT_LE(Distance(parts.gradients(), whole.gradients()), 1e-6);
  }
}

TEST(Gpt, DropsSameElementsForSameStreamOnly) {
  Rig rig(SmallConfig(0.2), 3);
  const double loss = rig.LossAndGradient(rig.Batch());
  const std::vector<std::vector<float>> gradients = rig.gradients();
  EXPECT_EQ(rig.LossAndGradient(rig.Batch()), loss);
  EXPECT_EQ(rig.gradients(), gradients);

  const auto with = [&](const std::function<void(MicroBatch&)>& change) {
    MicroBatch batch = rig.Batch();
    change(batch);
    return rig.Loss(batch);
  };
  EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.step += 1; }), loss);
  EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.seed += 1; }), loss);
  EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.first_sample += 1; }), loss);
  EXPECT_NE(with([](MicroBatch& batch) { batch.training = false; }), loss);
}

TEST(Gpt, GivesSameBitsForAnyNumberOfThreads) {
  ModelConfig config = SmallConfig(0.1);
  config.set_width(96);
  config.set_context(70);
  Rig one(config, 4, 1, 67);
  const double loss = one.LossAndGradient(one.Batch());
  for (const int threads : {2, 3, 5}) {
    Rig several(config, 4, threads, 67);
    EXPECT_EQ(several.LossAndGradient(several.Batch()), loss) << threads << " threads";
    EXPECT_EQ(several.gradients(), one.gradients()) << threads << " threads";
  }
}

TEST(Gpt, EvaluationEqualsTrainingWithoutDropout) {
  Rig none(SmallConfig(0), 3), some(SmallConfig(0.3), 3);
  const double loss = none.Loss(none.Batch(0, 3, /*training=*/false));
  EXPECT_EQ(none.Loss(none.Batch()), loss);
  EXPECT_EQ(some.Loss(some.Batch(0, 3, /*training=*/false)), loss);
}

TEST(Gpt, TiedHeadEqualsUntiedHeadWithSameMatrix) {
  Rig tied(SmallConfig(0.1, true), 3), untied(SmallConfig(0.1, false), 3);
  const int head = tied.gpt().num_blocks() - 1;
  const size_t wte_size = untied.weights()[head].size() - tied.weights()[head].size();
  for (int b = 0; b < head; ++b) untied.weights()[b] = tied.weights()[b];
  for (int b = 0; b < head; ++b) untied.gpt().BindWeights(b, untied.weights()[b]);
  std::copy_n(tied.weights()[0].begin(), wte_size, untied.weights()[head].begin());
  std::copy(tied.weights()[head].begin(), tied.weights()[head].end(),
            untied.weights()[head].begin() + static_cast<ptrdiff_t>(wte_size));

  EXPECT_EQ(tied.LossAndGradient(tied.Batch()), untied.LossAndGradient(untied.Batch()));
  double difference = 0;
  for (size_t i = 0; i < wte_size; ++i) {
    const double sum = double{untied.gradients()[0][i]} + double{untied.gradients()[head][i]};
    difference = std::max(difference, std::abs(tied.gradients()[0][i] - sum));
  }
  EXPECT_LE(difference, 1e-6 * Norm(tied.gradients()[0]));
}

TEST(Gpt, ReadsWeightsAtEachUse) {
  Rig rig(SmallConfig(0), 2);
  const double loss = rig.Loss(rig.Batch());
  std::vector<float> other = rig.weights()[1];
  rig.weights()[1][0] += 0.5f;
  const double changed = rig.Loss(rig.Batch());
  EXPECT_NE(changed, loss);
  rig.gpt().BindWeights(1, other);
  EXPECT_EQ(rig.Loss(rig.Batch()), loss);
}

TEST(Gpt, CreateNamesTheFieldThatIsOutOfRange) {
  ThreadPool pool(1);
  ModelConfig config = SmallConfig(0);
  config.set_heads(5);
  auto gpt = Gpt::Create(config, 19, 1, pool);
  EXPECT_EQ(gpt.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(gpt.status().message().find("model.heads 5"), absl::string_view::npos);

  config = SmallConfig(0);
  config.set_context(1u << 20);  // 3 heads of 2^40 attention weights
  gpt = Gpt::Create(config, 19, 1, pool);
  EXPECT_EQ(gpt.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(gpt.status().message().find("model.context"), absl::string_view::npos);
}

TEST(Gpt, LogitsAreUntouchedByEarlierPasses) {
  Rig rig(SmallConfig(0.2), 3);
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5};
  std::vector<float> before(19), after(19);
  rig.gpt().Logits(prompt, before);
  rig.LossAndGradient(rig.Batch());
  rig.gpt().Logits(prompt, after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace tug
