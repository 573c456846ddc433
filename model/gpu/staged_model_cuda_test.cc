// SPDX-License-Identifier: Apache-2.0
// A model that stages weights and gradients has the same bits as one with memory on the GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "model/gpu/cuda_model_rig.h"
#include "model/gpu/staged_model.h"
#include "model/transformer/memory.h"
#include "model/transformer/model_rig.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_late.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#endif

namespace tug {
namespace {

using Blocks = std::vector<std::vector<float>>;

// Difference between the GPU's clock and the host's, including the GPU's rounding.
constexpr int64_t kClockErrorNs = 1'000'000;

using StagedModelCuda = kernels::cuda::LateCudaTest;

// A staged model with weights and gradients in host memory; weights start as the rig's.
class Staged {
 public:
  explicit Staged(const ModelRig& rig, bool bf16_weights = false) {
    auto made = NewStagedModel(0, {.model = rig.options(), .bf16_weights = bf16_weights});
    TUG_CHECK_OK(made);
    model_ = std::move(made->model);
    tracer_ = made->tracer;
    for (const auto& weights : const_cast<ModelRig&>(rig).weights()) {
      weights_.push_back(weights);
      gradients_.emplace_back(weights.size(), std::nanf(""));
    }
    for (size_t b = 0; b < weights_.size(); ++b) {
      pins_.push_back(model_->Pin(std::as_writable_bytes(std::span(gradients_[b]))));
      model_->BindGradient(static_cast<int>(b), gradients_[b]);
      if (!bf16_weights) Bind(b);
    }
  }
  ~Staged() { EXPECT_TRUE(model_->Synchronize().ok()); }

  void Bind(size_t block) {
    model_->BindWeights(static_cast<int>(block), {.fp32 = weights_[block]});
  }
  // With `one_by_one`, each gradient is awaited before the next pass is queued; otherwise at the
  // end.
  LossSums Run(const MicroBatch& batch, bool one_by_one = false) {
    RunForward(*model_, batch);
    for (int b = model_->num_blocks() - 1; b >= 0; --b) {
      model_->Backward(b);
      if (one_by_one) Await(b);
    }
    for (int b = 0; b < model_->num_blocks() && !batch.partial; ++b) Await(b);
    return model_->losses();
  }
  void Await(int block) {
    const absl::Status status = model_->AwaitGradient(block);
    EXPECT_TRUE(status.ok()) << status;
  }

  Model& model() { return *model_; }
  PassTracer& tracer() { return *tracer_; }
  Blocks& weights() { return weights_; }
  Blocks& gradients() { return gradients_; }

 private:
  Blocks weights_, gradients_;
  std::unique_ptr<Model> model_;
  PassTracer* tracer_ = nullptr;
  std::vector<std::shared_ptr<void>> pins_;
};

bool AllNaN(const Blocks& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const std::vector<float>& block) {
    return std::all_of(block.begin(), block.end(), [](float x) { return std::isnan(x); });
  });
}

TEST_F(StagedModelCuda, HasTheBitsOfOneWhoseMemoryIsOnTheGpu) {
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(absl::StrCat(FamilyName(family), " tied ", tied));
      ModelOptions options = SmallModel(family, 0.1);
      options.config.set_tied_head(tied);
      ModelRig rig(options);
      CudaModelRig gpu(rig);
      Staged staged(rig);
      EXPECT_TRUE(staged.model().queues());
      const LossSums losses = gpu.LossAndGradient(rig.Batch());
      for (const bool one_by_one : {false, true}) {
        for (auto& gradient : staged.gradients()) {
          std::fill(gradient.begin(), gradient.end(), std::nanf(""));
        }
        const LossSums same = staged.Run(rig.Batch(), one_by_one);
        EXPECT_EQ(same.loss, losses.loss);
        EXPECT_EQ(same.targets, losses.targets);
        EXPECT_EQ(same.correct, losses.correct);
        EXPECT_EQ(staged.gradients(), gpu.gradients());
      }
      RunForward(staged.model(), rig.Batch(/*training=*/false));
      EXPECT_EQ(staged.model().losses().loss, gpu.EvaluationLosses().loss);
    }
  }
}

// Announced passes appear in order and do not overlap, by the host's clock; the bits are those of
// an untraced model.
TEST_F(StagedModelCuda, SaysWhenTheDeviceWasAtEachPass) {
  ModelRig rig(SmallModel(ModelConfig::DECODER, 0.1));
  Staged plain(rig), traced(rig);
  plain.Run(rig.Batch());
  const RealTime time;
  TraceTrack track("device", {.first = 5, .end = 6}, 100, time);
  const int blocks = traced.model().num_blocks();
  const int64_t begin_ns = track.NowNs();
  for (const uint64_t clock : {4u, 5u, 6u}) {
    Model& model = traced.model();
    const auto announce = [&](TraceKind kind, int b) {
      traced.tracer().TraceNextPass(
          track, {.kind = kind, .block = static_cast<uint32_t>(b), .clock = clock});
    };
    model.Start(rig.Batch());
    for (int b = 0; b < blocks; ++b) {
      announce(TraceKind::kForward, b);
      model.Forward(b);
    }
    for (int b = blocks - 1; b >= 0; --b) {
      announce(TraceKind::kBackward, b);
      model.Backward(b);
    }
    for (int b = 0; b < blocks; ++b) traced.Await(b);
    EXPECT_EQ(track.events().size(), clock < 5 ? 0 : 2 * static_cast<size_t>(blocks));
  }
  EXPECT_EQ(traced.gradients(), plain.gradients());
  int64_t last_ns = begin_ns;
  for (size_t i = 0; i < track.events().size(); ++i) {
    const TraceEvent& event = track.events()[i];
    const auto pass = static_cast<int>(i);
    EXPECT_EQ(event.kind, pass < blocks ? TraceKind::kForward : TraceKind::kBackward);
    EXPECT_EQ(event.block, static_cast<uint32_t>(pass < blocks ? pass : 2 * blocks - 1 - pass));
    EXPECT_GE(event.begin_ns, last_ns - kClockErrorNs) << i;
    EXPECT_GE(event.end_ns, event.begin_ns) << i;
    last_ns = event.end_ns;
  }
  EXPECT_LE(last_ns, track.NowNs() + kClockErrorNs);
}

TEST_F(StagedModelCuda, KeepsGradientsOfPartialPassesToItself) {
  for (const bool tied : {false, true}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER, 0.1);
    options.config.set_tied_head(tied);
    ModelRig rig(options);
    CudaModelRig gpu(rig);
    Staged staged(rig);
    for (int step = 0; step < 2; ++step) {
      double loss = 0, same = 0;
      for (int sample = 0; sample < 3; ++sample) {
        MicroBatch batch = rig.Batch(sample, 1);
        batch.accumulate = sample > 0;
        batch.partial = sample < 2;
        loss += gpu.LossAndGradient(batch).loss;
        same += staged.Run(batch).loss;
        if (step == 0) {
          EXPECT_EQ(AllNaN(staged.gradients()), batch.partial);
        }
      }
      EXPECT_EQ(same, loss);
      EXPECT_EQ(staged.gradients(), gpu.gradients());
    }
  }
}

// As in a worker: a block's weights change once its gradient was awaited.
TEST_F(StagedModelCuda, TakesWeightsThatAreBoundAgain) {
  ModelRig rig(SmallModel(ModelConfig::DECODER, 0.1));
  Staged staged(rig);
  for (int step = 0; step < 3; ++step) {
    CudaModelRig gpu(rig);
    const double loss = gpu.LossAndGradient(rig.Batch()).loss;
    RunForward(staged.model(), rig.Batch());
    for (int b = staged.model().num_blocks() - 1; b >= 0; --b) {
      staged.model().Backward(b);
      staged.Await(b);
      const auto block = static_cast<size_t>(b);
      EXPECT_EQ(staged.gradients()[block], gpu.gradients()[block]) << "step " << step;
      for (float& weight : staged.weights()[block]) weight *= 0.9f;
      // An awaited gradient belongs to the caller.
      std::fill(staged.gradients()[block].begin(), staged.gradients()[block].end(), 0.0f);
      if (b > 0) staged.Bind(block);
    }
    EXPECT_EQ(staged.model().losses().loss, loss);
    staged.Bind(0);
    rig.weights() = staged.weights();
  }
}

// Weights are bound before each pass that reads them, and others after it. No pass waits for the
// host, so only events keep the two apart.
TEST_F(StagedModelCuda, ReadsTheWeightsThatWereBoundWhenThePassWasQueued) {
  for (const bool tied : {false, true}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER, 0.1);
    options.config.set_tied_head(tied);
    ModelRig rig(options);
    CudaModelRig gpu(rig);
    const double loss = gpu.LossAndGradient(rig.Batch()).loss;
    const double evaluation_loss = gpu.EvaluationLosses().loss;
    const Blocks expected = gpu.gradients();
    Blocks others;
    for (const auto& block : rig.weights()) others.emplace_back(block.size(), std::nanf(""));
    Staged staged(rig);
    Model& model = staged.model();
    const int last = model.num_blocks() - 1;
    const auto run = [&](int block, auto pass) {
      const bool reads_tied = tied && block == last;
      staged.Bind(static_cast<size_t>(block));
      if (reads_tied) staged.Bind(0);
      pass(block);
      for (const int read : {block, reads_tied ? 0 : block}) {
        model.BindWeights(read, {.fp32 = others[static_cast<size_t>(read)]});
      }
    };
    model.Start(rig.Batch(/*training=*/false));
    for (int b = 0; b <= last; ++b) run(b, [&](int block) { model.Forward(block); });
    EXPECT_EQ(model.losses().loss, evaluation_loss);
    model.Start(rig.Batch());
    for (int b = 0; b <= last; ++b) run(b, [&](int block) { model.Forward(block); });
    for (int b = last; b >= 0; --b) run(b, [&](int block) { model.Backward(block); });
    for (int b = 0; b <= last; ++b) staged.Await(b);
    EXPECT_EQ(model.losses().loss, loss);
    EXPECT_EQ(staged.gradients(), expected);
    // `others` is destroyed before the model.
    ASSERT_TRUE(model.Synchronize().ok());
  }
}

// Queued work reads and writes host memory until then.
TEST_F(StagedModelCuda, SynchronizesCopiesOfBothDirections) {
  ModelRig rig(SmallModel(ModelConfig::DECODER, 0.1));
  CudaModelRig gpu(rig);
  const double loss = gpu.LossAndGradient(rig.Batch()).loss;
  Staged staged(rig);
  Model& model = staged.model();
  ASSERT_TRUE(model.Synchronize().ok());
  for (auto& block : staged.weights()) std::fill(block.begin(), block.end(), std::nanf(""));
  RunForward(model, rig.Batch());
  for (int b = model.num_blocks() - 1; b >= 0; --b) model.Backward(b);
  ASSERT_TRUE(model.Synchronize().ok());
  EXPECT_EQ(staged.gradients(), gpu.gradients());
  EXPECT_EQ(model.losses().loss, loss);
}

// As with a block window: host memory of weights is freed after the forward pass, and bound again
// before the backward pass.
TEST_F(StagedModelCuda, LetsGoOfReleasedWeightsAtOnce) {
  ModelOptions options = SmallModel(ModelConfig::DECODER, 0.1);
  options.config.set_tied_head(false);
  ModelRig rig(options);
  CudaModelRig gpu(rig);
  Staged staged(rig);
  Model& model = staged.model();
  model.Start(rig.Batch());
  for (int b = 0; b < model.num_blocks(); ++b) {
    model.Forward(b);
    model.ReleaseWeights(b);
    auto& weights = staged.weights()[static_cast<size_t>(b)];
    std::fill(weights.begin(), weights.end(), std::nanf(""));
  }
  for (int b = model.num_blocks() - 1; b >= 0; --b) {
    const auto block = static_cast<size_t>(b);
    staged.weights()[block] = rig.weights()[block];
    model.BindWeights(b, {.fp32 = staged.weights()[block]});
    model.Backward(b);
    model.ReleaseWeights(b);
    std::fill(staged.weights()[block].begin(), staged.weights()[block].end(), std::nanf(""));
  }
  for (int b = 0; b < model.num_blocks(); ++b) staged.Await(b);
  EXPECT_EQ(model.losses().loss, gpu.LossAndGradient(rig.Batch()).loss);
  EXPECT_EQ(staged.gradients(), gpu.gradients());
  EXPECT_EQ(model.weight_copy_bytes(), 0u) << "in the host's memory";
}

// ReleaseWeights waits for copies that no pass has waited for: the GPU has the bound weights.
TEST_F(StagedModelCuda, ReadsReleasedMemoryNoMore) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  CudaModelRig gpu(rig);
  Staged staged(rig);
  for (int b = 0; b < staged.model().num_blocks(); ++b) {
    staged.model().ReleaseWeights(b);
    auto& weights = staged.weights()[static_cast<size_t>(b)];
    std::fill(weights.begin(), weights.end(), std::nanf(""));
  }
  EXPECT_EQ(staged.Run(rig.Batch()).loss, gpu.LossAndGradient(rig.Batch()).loss);
}

// The next pass must not overwrite a gradient that is not copied yet.
TEST_F(StagedModelCuda, KeepsAGradientUntilItIsCopied) {
  for (const bool tied : {false, true}) {
    ModelOptions options = SmallModel(ModelConfig::DECODER, 0.1);
    options.config.set_tied_head(tied);
    ModelRig rig(options);
    CudaModelRig gpu(rig);
    gpu.LossAndGradient(rig.Batch());
    const Blocks expected = gpu.gradients();
    Staged staged(rig);
    Model& model = staged.model();
    Blocks second = staged.gradients();
    for (int pass = 0; pass < 2; ++pass) {
      MicroBatch batch = rig.Batch();
      batch.dropout.step += static_cast<uint32_t>(pass);
      RunForward(model, batch);
      for (int b = model.num_blocks() - 1; b >= 0; --b) {
        if (pass == 1) model.BindGradient(b, second[static_cast<size_t>(b)]);
        model.Backward(b);
      }
    }
    // Waits for both passes, but only for copies that the passes themselves wait for.
    EXPECT_GT(model.losses().targets, 0u);
    for (int b = 0; b < model.num_blocks(); ++b) staged.Await(b);
    EXPECT_EQ(staged.gradients(), expected);
    EXPECT_NE(second, expected);
    // `second` is destroyed before the model.
    ASSERT_TRUE(model.Synchronize().ok());
  }
}

#if TUG_CUDA_EMULATED
// Work queued before an error still reads and writes host memory.
TEST_F(StagedModelCuda, WaitsForCopiesBehindAnErrorBeforeItGoes) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  CudaModelRig gpu(rig);
  gpu.LossAndGradient(rig.Batch());
  const kernels::emulation::LateStreams latest(/*seed=*/0);
  for (const bool destroyed : {false, true}) {
    Blocks gradients;  // outlives the model, which still has a copy to make
    auto made = NewStagedModel(0, {.model = rig.options()});
    ASSERT_TRUE(made.ok()) << made.status();
    Model& model = *made->model;
    for (int b = 0; b < model.num_blocks(); ++b) {
      const auto& weights = rig.weights()[static_cast<size_t>(b)];
      gradients.emplace_back(weights.size(), std::nanf(""));
      model.BindWeights(b, {.fp32 = weights});
    }
    for (int b = 0; b < model.num_blocks(); ++b) {
      model.BindGradient(b, gradients[static_cast<size_t>(b)]);
    }
    RunForward(model, rig.Batch());
    const int last = model.num_blocks() - 1;
    model.Backward(last);
    EXPECT_TRUE(std::isnan(gradients.back().front())) << "late";
    kernels::emulation::FailAllocations(true);
    model.Backward(last - 1);
    kernels::emulation::FailAllocations(false);
    EXPECT_TRUE(absl::IsResourceExhausted(model.status())) << model.status();
    if (destroyed) {
      made->model.reset();
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(model.AwaitGradient(last)));
    }
    EXPECT_EQ(gradients.back(), gpu.gradients().back());
  }
}

TEST_F(StagedModelCuda, SaysWhatItPlansWhereTheGpuHasLessThanItSaid) {
  kernels::emulation::FailAllocations(true);
  const absl::Status status =
      NewStagedModel(0, {.model = SmallModel(ModelConfig::DECODER)}).status();
  kernels::emulation::FailAllocations(false);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.ToString().find("train.micro_batch"), std::string::npos) << status;
}
#endif

TEST_F(StagedModelCuda, PinsWholePagesOnly) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  Staged staged(rig);
  constexpr size_t kBytes = size_t{64} << 10;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, 2 * kBytes),
                                                           std::free);
  ASSERT_NE(memory, nullptr);
  auto* const pages = static_cast<std::byte*>(memory.get());
  EXPECT_NE(staged.model().Pin({pages, kBytes}), nullptr);
  EXPECT_EQ(staged.model().Pin({pages, kBytes - 1}), nullptr) << "too few";
  EXPECT_EQ(staged.model().Pin({pages + 64, kBytes}), nullptr);
}

TEST_F(StagedModelCuda, TakesBf16AsItIsBound) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.train.set_precision(TrainConfig::BF16);
  ModelRig rig(options);
  std::vector<std::vector<kernels::Bf16>> narrow;
  for (std::vector<float>& block : rig.weights()) {
    const auto size = static_cast<int64_t>(block.size());
    kernels::Bf16FromFloat(block.data(), narrow.emplace_back(block.size()).data(), size);
    kernels::FloatFromBf16(narrow.back().data(), block.data(), size);
  }
  Staged wide(rig), as_bound(rig, /*bf16_weights=*/true);
  for (size_t b = 0; b < narrow.size(); ++b) {
    as_bound.model().BindWeights(static_cast<int>(b), {.bf16 = narrow[b]});
  }
  EXPECT_EQ(as_bound.Run(rig.Batch()).loss, wide.Run(rig.Batch()).loss);
  EXPECT_EQ(as_bound.gradients(), wide.gradients());
}

// Counts the copies that BF16 needs.
TEST_F(StagedModelCuda, PlansTheCopiesThatAModelMakes) {
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    ModelOptions options = SmallModel(family);
    options.train.set_precision(TrainConfig::BF16);
    ModelRig rig(options);
    CudaModelRig gpu(rig);
    gpu.LossAndGradient(rig.Batch());
    EXPECT_EQ(PredictDeviceBytes(options, /*bf16_weights=*/false).copies,
              gpu.model().weight_copy_bytes());
    uint64_t widened = 0;  // biases and norms, not in weight_copy_bytes
    for (const BlockSpec& block : gpu.model().blocks().blocks()) {
      for (const TensorSpec& tensor : block.tensors()) {
        if (tensor.shape_size() == 1) widened += ElementCount(tensor) * sizeof(float);
      }
    }
    std::vector<kernels::cuda::DeviceBuffer> weights;
    for (int b = 0; b < gpu.model().num_blocks(); ++b) {
      gpu.model().ReleaseWeights(b);
      std::vector<kernels::Bf16> zeros(rig.weights()[static_cast<size_t>(b)].size());
      weights.push_back(gpu.OnGpu(zeros));
      gpu.model().BindWeights(b, {.bf16 = {weights.back().As<kernels::Bf16>(), zeros.size()}});
    }
    gpu.LossAndGradient(rig.Batch());
    EXPECT_EQ(PredictDeviceBytes(options, /*bf16_weights=*/true).copies,
              gpu.model().weight_copy_bytes() + widened);
  }
}

TEST_F(StagedModelCuda, WritesLogits) {
  ModelRig rig(SmallModel(ModelConfig::DECODER));
  CudaModelRig gpu(rig);
  Staged staged(rig);
  std::vector<float> logits(kRigSymbols), same(kRigSymbols);
  gpu.model().Logits(std::span(rig.tokens()).first(7), logits);
  staged.model().Logits(std::span(rig.tokens()).first(7), same);
  EXPECT_EQ(logits, same);

  ModelRig of_two(SmallModel(ModelConfig::ENCODER_DECODER));
  CudaModelRig gpu_of_two(of_two);
  Staged staged_of_two(of_two);
  const MicroBatch batch = of_two.Batch(0, 1, /*training=*/false);
  gpu_of_two.model().Logits(batch, /*position=*/1, logits);
  staged_of_two.model().Logits(batch, /*position=*/1, same);
  EXPECT_EQ(logits, same);
}

TEST_F(StagedModelCuda, SaysWhatItPlansAndWhatHelpsWhereThatIsTooMuch) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  const auto made = NewStagedModel(0, {.model = options});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->device_bytes, PredictDeviceBytes(options, false).total());
  EXPECT_NE(made->device.find(" GiB"), std::string::npos);
  options.max_micro_batch = 1 << 30;
  const absl::Status status = NewStagedModel(0, {.model = options}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* part : {"weights", "gradients", "activations", "free", "train.micro_batch",
                           "train.recompute", "train.precision", "device"}) {
    EXPECT_NE(status.ToString().find(part), std::string::npos) << part << " in " << status;
  }
}

TEST_F(StagedModelCuda, IsNotForModelsThatItHasNoKernelsFor) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.config.set_width(264);
  options.config.set_heads(2);
  const absl::Status status = NewStagedModel(0, {.model = options}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.ToString().find("heads have 132 elements"), std::string::npos) << status;
}

}  // namespace
}  // namespace tug
