// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/cpu/thread_pool.h"
#include "model/layers/activations.h"
#include "model/layout.h"
#include "model/transformer/create_model.h"
#include "model/transformer/model_rig.h"

namespace tug {
namespace {

constexpr ModelConfig::Family kFamilies[] = {ModelConfig::DECODER, ModelConfig::ENCODER,
                                             ModelConfig::ENCODER_DECODER};

void ExpectClose(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b,
                 double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t block = 0; block < a.size(); ++block) {
    EXPECT_LE(Distance(a[block], b[block]), bound) << "block " << block;
  }
}

TEST(Model, MicroBatchesAddUpToTheBatch) {
  for (const ModelConfig::Family family : kFamilies) {
    for (const bool tied : {true, false}) {
      ModelOptions options = SmallModel(family, 0.2);
      options.config.set_tied_head(tied);
      options.max_micro_batch = 5;
      ModelRig whole(options), parts(options);
      const LossSums losses = whole.LossAndGradient(whole.Batch());
      LossSums sum;
      for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 2)}) {
        MicroBatch batch = parts.Batch(first, count);
        batch.accumulate = first > 0;
        const LossSums part = parts.LossAndGradient(batch);
        sum.loss += part.loss;
        sum.targets += part.targets;
        sum.correct += part.correct;
      }
      EXPECT_NEAR(sum.loss / losses.loss, 1, 1e-6);
      EXPECT_EQ(sum.targets, losses.targets);
      EXPECT_EQ(sum.correct, losses.correct);
      ExpectClose(parts.gradients(), whole.gradients(), 2e-6);
    }
  }
}

TEST(Model, DropsSameElementsForSameStreamOnly) {
  for (const ModelConfig::Family family : kFamilies) {
    ModelRig rig(SmallModel(family, 0.2));
    const double loss = rig.LossAndGradient(rig.Batch()).loss;
    const std::vector<std::vector<float>> gradients = rig.gradients();
    EXPECT_EQ(rig.LossAndGradient(rig.Batch()).loss, loss);
    EXPECT_EQ(rig.gradients(), gradients);

    const auto with = [&](const std::function<void(MicroBatch&)>& change) {
      MicroBatch batch = rig.Batch();
      change(batch);
      return rig.TrainingLoss(batch);
    };
    EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.step += 1; }), loss);
    EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.seed += 1; }), loss);
    EXPECT_NE(with([](MicroBatch& batch) { batch.dropout.first_sample += 1; }), loss);
    EXPECT_NE(rig.EvaluationLoss(), loss);
  }
}

TEST(Model, GivesSameBitsForAnyNumberOfThreads) {
  for (const ModelConfig::Family family : kFamilies) {
    for (const TrainConfig::Precision precision : {TrainConfig::FP32, TrainConfig::BF16}) {
      ModelOptions options = SmallModel(family, 0.1);
      options.config.set_width(96);
      options.config.set_mlp_width(200);
      options.config.set_context(70);
      options.train.set_precision(precision);
      options.symbols = 67;
      options.max_micro_batch = 4;
      ModelRig one(options);
      const double loss = one.LossAndGradient(one.Batch()).loss;
      for (const int threads : {2, 3, 5}) {
        ModelRig several(options, threads);
        EXPECT_EQ(several.LossAndGradient(several.Batch()).loss, loss) << threads << " threads";
        EXPECT_EQ(several.gradients(), one.gradients()) << threads << " threads";
      }
    }
  }
}

TEST(Model, EvaluationEqualsTrainingWithoutDropout) {
  for (const ModelConfig::Family family : kFamilies) {
    ModelRig none(SmallModel(family)), some(SmallModel(family, 0.3));
    const double loss = none.EvaluationLoss();
    EXPECT_EQ(none.TrainingLoss(none.Batch()), loss);
    EXPECT_EQ(some.EvaluationLoss(), loss);
  }
}

TEST(Model, InferenceGivesTheBitsOfEvaluation) {
  for (const ModelConfig::Family family : kFamilies) {
    for (const ModelConfig::NormPlace norm : {ModelConfig::PRE, ModelConfig::POST}) {
      ModelOptions options = SmallModel(family);
      options.config.set_norm(norm);
      options.config.set_layers(3);
      options.config.set_activation(ModelConfig::RELU);
      ModelRig trained(options);
      options.inference = true;
      ModelRig inferring(options);
      EXPECT_EQ(inferring.EvaluationLoss(), trained.EvaluationLoss()) << FamilyName(family);
    }
  }
}

// Logits computed in chunks of rows are the same as at once.
TEST(Model, VocabularyBeyondAChunkGivesTheSameLossesAndGradients) {
  for (const TrainConfig::Precision precision : {TrainConfig::FP32, TrainConfig::BF16}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER);
    options.config.set_context(80);
    options.config.set_vocabulary(480000);
    ASSERT_EQ(HeadChunkRows(480000), 64) << "of 240";
    options.train.set_precision(precision);
    ModelRig chunked(options);
    options.max_micro_batch = 1;
    ModelRig single(options);
    const LossSums losses = chunked.LossAndGradient(chunked.Batch());
    EXPECT_EQ(losses.targets, 240u);
    double sum = 0;
    for (int sample = 0; sample < 3; ++sample) {
      MicroBatch batch = chunked.Batch(sample, 1);
      batch.accumulate = sample > 0;
      sum += single.LossAndGradient(batch).loss;
    }
    EXPECT_NEAR(sum / losses.loss, 1, 1e-6);
    ExpectClose(single.gradients(), chunked.gradients(), 2e-6);
    // Evaluation computes its losses on another path.
    EXPECT_EQ(chunked.EvaluationLoss(), losses.loss);
  }
}

TEST(Model, TargetsThatDoNotCountLeaveNoTrace) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  const LossSums all = rig.LossAndGradient(rig.Batch());
  EXPECT_EQ(all.targets, 30u);
  std::ranges::fill(rig.targets(), kernels::kNoTarget);
  const LossSums none = rig.LossAndGradient(rig.Batch());
  EXPECT_EQ(none.targets, 0u);
  EXPECT_EQ(none.loss, 0);
  for (const std::vector<float>& gradient : rig.gradients()) EXPECT_EQ(Norm2(gradient), 0);
}

TEST(Model, PaddingIsNotSeen) {
  for (const ModelConfig::Family family : {ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const ModelConfig::NormPlace norm : {ModelConfig::PRE, ModelConfig::POST}) {
      ModelOptions options = SmallModel(family, 0.1);
      options.config.set_norm(norm);
      options.config.set_bias(false);
      ModelRig rig(options);
      rig.lengths() = {4, 10, 1};
      const double loss = rig.LossAndGradient(rig.Batch()).loss;
      const std::vector<std::vector<float>> gradients = rig.gradients();
      // Changes tokens after the first 4 of sample 0 and after the first of sample 2.
      for (const int position : {4, 9, 21, 25}) {
        rig.tokens()[position] = (rig.tokens()[position] + 1) % kRigSymbols;
      }
      EXPECT_EQ(rig.LossAndGradient(rig.Batch()).loss, loss);
      EXPECT_EQ(rig.gradients(), gradients);
      rig.tokens()[3] = (rig.tokens()[3] + 1) % kRigSymbols;
      EXPECT_NE(rig.LossAndGradient(rig.Batch()).loss, loss);
    }
  }
}

TEST(Model, DecoderDoesNotSeeTheFuture) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  std::ranges::fill(rig.targets(), kernels::kNoTarget);
  rig.targets()[6] = 3;
  const double loss = rig.EvaluationLoss();
  rig.tokens()[7] = (rig.tokens()[7] + 1) % kRigSymbols;
  EXPECT_EQ(rig.EvaluationLoss(), loss);
  rig.tokens()[6] = (rig.tokens()[6] + 1) % kRigSymbols;
  EXPECT_NE(rig.EvaluationLoss(), loss);
}

TEST(Model, TiedHeadEqualsUntiedHeadWithSameMatrix) {
  for (const ModelConfig::Family family : {ModelConfig::DECODER, ModelConfig::ENCODER_DECODER}) {
    ModelOptions options = SmallModel(family, 0.1);
    ModelRig tied(options);
    options.config.set_tied_head(false);
    ModelRig untied(options);
    ASSERT_TRUE(tied.model().tied_block().has_value());
    EXPECT_FALSE(untied.model().tied_block().has_value());
    const auto tied_block = static_cast<size_t>(*tied.model().tied_block());
    const auto head = static_cast<size_t>(tied.model().num_blocks()) - 1;
    const size_t wte_size = untied.weights()[head].size() - tied.weights()[head].size();
    for (size_t b = 0; b < head; ++b) untied.weights()[b] = tied.weights()[b];
    std::copy_n(tied.weights()[tied_block].begin(), wte_size, untied.weights()[head].begin());
    std::ranges::copy(tied.weights()[head],
                      untied.weights()[head].begin() + static_cast<ptrdiff_t>(wte_size));
    untied.Bind();

    EXPECT_EQ(tied.LossAndGradient(tied.Batch()).loss, untied.LossAndGradient(untied.Batch()).loss);
    double difference = 0;
    for (size_t i = 0; i < wte_size; ++i) {
      const double sum =
          double{untied.gradients()[tied_block][i]} + double{untied.gradients()[head][i]};
      difference = std::max(difference, std::abs(tied.gradients()[tied_block][i] - sum));
    }
    EXPECT_LE(difference, 1e-6 * Norm2(tied.gradients()[tied_block]));
  }
}

TEST(Model, ReadsWeightsThatWereBoundAgain) {
  for (const TrainConfig::Precision precision : {TrainConfig::FP32, TrainConfig::BF16}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER);
    options.train.set_precision(precision);
    ModelRig rig(options);
    const double loss = rig.EvaluationLoss();
    for (const size_t block : {0, 1, 3}) {
      std::vector<float> other = rig.weights()[block];
      other[0] += 5.0f;
      rig.model().BindWeights(static_cast<int>(block), {.fp32 = other});
      EXPECT_NE(rig.EvaluationLoss(), loss) << "block " << block;
      rig.model().BindWeights(static_cast<int>(block), {.fp32 = rig.weights()[block]});
      EXPECT_EQ(rig.EvaluationLoss(), loss) << "block " << block;
    }
  }
}

TEST(Model, LabelSmoothingAndZLossChangeGradientsButNotTheReportedLoss) {
  for (const ModelConfig::Family family : kFamilies) {
    ModelOptions options = SmallModel(family);
    ModelRig plain(options);
    options.train.set_label_smoothing(0.1);
    options.train.set_z_loss(1e-3);
    ModelRig smoothed(options);
    EXPECT_EQ(plain.LossAndGradient(plain.Batch()).loss,
              smoothed.LossAndGradient(smoothed.Batch()).loss);
    EXPECT_NE(plain.gradients(), smoothed.gradients());
  }
}

TEST(Model, CreateNamesTheFieldThatIsOutOfRange) {
  ThreadPool pool(1);
  const auto error = [&](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options = SmallModel(ModelConfig::ENCODER);
    change(options);
    const absl::Status status = CreateModel(options, pool).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_NE(error([](ModelOptions& o) { o.config.set_heads(5); }).find("model.heads 5"),
            std::string::npos);
  // 3 heads of 2^40 attention weights.
  EXPECT_NE(error([](ModelOptions& o) { o.config.set_context(1u << 20); }).find("model.context"),
            std::string::npos);
  EXPECT_NE(error([](ModelOptions& o) { o.classes = 0; }).find("model.classes"), std::string::npos);
  EXPECT_NE(error([](ModelOptions& o) {
              o.train.set_recompute(TrainConfig::UNIFORM);
              o.train.set_recompute_layers(3);
            }).find("train.recompute_layers 3"),
            std::string::npos);
}

TEST(Model, LogitsOfASampleGiveItsLoss) {
  for (const auto family : {ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    ModelRig rig(SmallModel(family));
    Model& model = rig.model();
    const MicroBatch batch = rig.Batch(0, 1, /*training=*/false);
    model.Start(batch);
    for (int block = 0; block < model.num_blocks(); ++block) model.Forward(block);
    const LossSums sums = model.losses();
    double loss = 0;
    std::vector<float> logits(family == ModelConfig::ENCODER ? kRigClasses : kRigSymbols);
    for (size_t row = 0; row < batch.targets.size(); ++row) {
      if (batch.targets[row] == kernels::kNoTarget) continue;
      model.Logits(batch, static_cast<int>(row), logits);
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      loss += std::log(sum) - double{logits[static_cast<size_t>(batch.targets[row])]};
    }
    EXPECT_NEAR(loss, sums.loss, 1e-4 * sums.loss);
  }
}

TEST(Model, LogitsAreUntouchedByEarlierPasses) {
  ModelRig rig(SmallModel(ModelConfig::DECODER, 0.2));
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5};
  std::vector<float> before(kRigSymbols), after(kRigSymbols);
  rig.model().Logits(prompt, before);
  rig.LossAndGradient(rig.Batch());
  rig.model().Logits(prompt, after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace tug
