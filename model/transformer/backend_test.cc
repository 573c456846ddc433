// SPDX-License-Identifier: Apache-2.0
#include "model/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "kernels/bf16.h"
#include "model/backend/queued_backend.h"
#include "model/layers/activations.h"
#include "model/transformer/create_model.h"
#include "model/transformer/memory.h"
#include "model/transformer/model_rig.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model on QueuedDevice.
struct QueuedRig {
  explicit QueuedRig(const ModelOptions& options) : device(pool), rig(options, device) {}

  // Queues a whole pass; waits for nothing.
  void Step(const MicroBatch& batch) {
    rig.Forward(batch);
    for (int block = rig.model().num_blocks() - 1; block >= 0; --block) rig.model().Backward(block);
  }
  QueueRecord& record() { return device.record(); }

  ThreadPool pool{1};
  QueuedDevice device;
  ModelRig rig;
};

std::vector<ModelOptions> Variants() {
  std::vector<ModelOptions> variants;
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const auto precision : {TrainConfig::FP32, TrainConfig::BF16}) {
      for (const auto recompute : {TrainConfig::NONE, TrainConfig::SELECTIVE, TrainConfig::FULL}) {
        for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
          ModelOptions options = SmallModel(family, 0.1);
          options.config.set_norm(norm);
          options.train.set_precision(precision);
          options.train.set_recompute(recompute);
          variants.push_back(options);
        }
      }
    }
  }
  return variants;
}

TEST(Backend, MayOnlyQueueAndGivesTheSameBits) {
  for (const ModelOptions& options : Variants()) {
    ModelRig cpu(options);
    QueuedRig queued(options);
    MicroBatch first = cpu.Batch(0, 1), second = cpu.Batch(1, 2);
    second.accumulate = true;
    cpu.LossAndGradient(first);
    const LossSums expected = cpu.LossAndGradient(second);

    queued.Step(first);
    queued.Step(second);
    EXPECT_EQ(queued.record().done, 0);
    EXPECT_TRUE(std::isnan(queued.rig.gradients().back()[0]));
    const LossSums sums = queued.rig.model().losses();
    EXPECT_EQ(sums.loss, expected.loss) << FamilyName(options.config.family());
    EXPECT_EQ(sums.targets, expected.targets);
    EXPECT_EQ(sums.correct, expected.correct);
    EXPECT_TRUE(queued.rig.model().Synchronize().ok());
    EXPECT_EQ(queued.rig.gradients(), cpu.gradients()) << FamilyName(options.config.family());
  }
}

// A backend with memory for the gradients of more logits than the CPU's one chunk.
TEST(Backend, SumsTheHeadsGradientOverSeveralChunksAtOnce) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.config.set_context(80);
  options.config.set_vocabulary(480000);
  options.train.set_precision(TrainConfig::BF16);
  ASSERT_EQ(HeadChunkRows(480000), 64) << "of 240";
  ASSERT_GE(HeadGradientRows(480000, kGpuLogitsGradientBytes), 240);
  ModelRig cpu(options);
  QueuedRig queued(options);
  const LossSums expected = cpu.LossAndGradient(cpu.Batch());
  queued.Step(cpu.Batch());
  EXPECT_EQ(queued.rig.model().losses().loss, expected.loss);
  const auto& gradients = queued.rig.gradients();
  for (size_t b = 0; b < gradients.size(); ++b) {
    EXPECT_LE(Distance(gradients[b], cpu.gradients()[b]), 2e-6) << "block " << b;
  }
}

TEST(Backend, GivesTheSameLogitsAndEvaluation) {
  for (const ModelOptions& options : Variants()) {
    ModelRig cpu(options);
    QueuedRig queued(options);
    EXPECT_EQ(queued.rig.EvaluationLoss(), cpu.EvaluationLoss());
    const bool encoder = options.config.family() == ModelConfig::ENCODER;
    const MicroBatch batch = cpu.Batch(1, 1, /*training=*/false);
    std::vector<float> logits(encoder ? kRigClasses : kRigSymbols), expected = logits;
    if (options.config.family() == ModelConfig::DECODER) {
      cpu.model().Logits(batch.tokens.first(4), expected);
      queued.rig.model().Logits(batch.tokens.first(4), logits);
    } else {
      const int position = encoder ? 0 : 4;
      cpu.model().Logits(batch, position, expected);
      queued.rig.model().Logits(batch, position, logits);
    }
    EXPECT_EQ(logits, expected) << FamilyName(options.config.family());
  }
}

// The error occurs in the first half of a step; a second step follows.
TEST(Backend, ErrorStaysAndEndsNothing) {
  for (const ModelOptions& options : Variants()) {
    QueuedRig counted(options);
    counted.Step(counted.rig.Batch());
    for (const int64_t fails_at : {int64_t{0}, counted.record().queued / 2}) {
      QueuedRig queued(options);
      queued.record().fails_at = fails_at;
      Model& model = queued.rig.model();
      queued.Step(queued.rig.Batch());
      EXPECT_TRUE(model.status().ok()) << "it is not known yet";
      EXPECT_EQ(model.losses().loss, 0);
      EXPECT_EQ(model.status().code(), absl::StatusCode::kInternal);
      const int64_t before = queued.record().queued;
      queued.Step(queued.rig.Batch());
      EXPECT_EQ(queued.record().queued, before);
      EXPECT_EQ(queued.record().done, fails_at);
      EXPECT_EQ(model.Synchronize(), model.status());
      EXPECT_TRUE(std::isnan(queued.rig.gradients().front().back()));
    }
  }
}

TEST(Backend, LackOfMemoryForActivationsNamesWhatHelps) {
  for (const auto precision : {TrainConfig::FP32, TrainConfig::BF16}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER);
    options.train.set_precision(precision);
    ThreadPool pool(1);
    QueuedDevice device(pool);
    device.record().memory_bytes = PredictActivationBytes(options) / 2;
    const absl::Status status = CreateModel(options, device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("activations"), HasSubstr("bytes requested"),
                      HasSubstr("train.micro_batch"), HasSubstr("train.recompute")));
  }
}

// bf16 weights need memory for their vectors in the first pass.
TEST(Backend, LackOfMemoryInAPassIsAnErrorThatStays) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.train.set_precision(TrainConfig::BF16);
  QueuedRig queued(options);
  queued.record().memory_bytes = 0;
  Model& model = queued.rig.model();
  std::vector<std::vector<kernels::Bf16>> weights;
  for (int block = 0; block < model.num_blocks(); ++block) {
    const std::vector<float>& floats = queued.rig.weights()[static_cast<size_t>(block)];
    std::vector<kernels::Bf16>& rounded = weights.emplace_back(floats.size());
    kernels::Bf16FromFloat(floats.data(), rounded.data(), static_cast<int64_t>(floats.size()));
    model.BindWeights(block, {.bf16 = rounded});
  }
  queued.Step(queued.rig.Batch());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(model.losses().loss, 0);
  EXPECT_EQ(queued.record().done, 0);
}

}  // namespace
}  // namespace tug
