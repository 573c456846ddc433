// SPDX-License-Identifier: Apache-2.0
// A model on several GPUs against one on a single GPU: same weights and batch, same elements
// dropped.
//
// Bounds: those between CPU and GPU in model_cuda_test.cc, for the same reason: another order of
// sums. The summands are exact: the gradients of the parts, each computed by one GPU.
#include "model/gpu/multi_gpu_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "model/gpu/cuda_model_rig.h"
#include "model/gpu/staged_model.h"
#include "model/op_profile.h"
#include "model/transformer/memory.h"
#include "model/transformer/model_rig.h"

#if TUG_CUDA_EMULATED
#include "kernels/emulation/cuda_emulation_memory.h"
#endif

namespace tug {
namespace {

constexpr double kLossBound = 1e-6;
constexpr double kBound = 1e-5;

// Emulated passes with memory or thread checks take a hundred times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

using Blocks = std::vector<std::vector<float>>;

std::vector<int> Numbers(int gpus) {
  std::vector<int> numbers(static_cast<size_t>(gpus));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

ModelOptions Options(ModelConfig::Family family, bool tied) {
  ModelOptions options = SmallModel(family, 0.1);
  options.config.set_tied_head(tied);
  return options;
}

// A model with weights and gradients in host memory; weights start as the rig's.
class Shared {
 public:
  Shared(ModelRig& rig, int gpus, bool bf16_weights = false)
      : weights_(rig.weights()), bf16_weights_(bf16_weights) {
    auto made =
        NewMultiGpuModel(Numbers(gpus), {.model = rig.options(), .bf16_weights = bf16_weights});
    TUG_CHECK_OK(made);
    model_ = std::move(made->model);
    for (const auto& weights : weights_) gradients_.emplace_back(weights.size(), std::nanf(""));
    for (int b = 0; b < model_->num_blocks(); ++b) {
      model_->BindGradient(b, gradients_[static_cast<size_t>(b)]);
      Bind(b);
    }
  }
  ~Shared() {
    const absl::Status status = model_->Synchronize();
    EXPECT_TRUE(status.ok()) << status;
  }

  void Bind(int block) {
    const auto b = static_cast<size_t>(block);
    if (!bf16_weights_) return model_->BindWeights(block, {.fp32 = weights_[b]});
    rounded_.resize(weights_.size());
    rounded_[b].resize(weights_[b].size());
    kernels::Bf16FromFloat(weights_[b].data(), rounded_[b].data(),
                           static_cast<int64_t>(weights_[b].size()));
    model_->BindWeights(block, {.bf16 = rounded_[b]});
  }
  LossSums Run(const MicroBatch& batch) {
    const LossSums sums = RunPass(*model_, batch);
    for (int b = 0; b < model_->num_blocks() && !batch.partial; ++b) Await(b);
    return sums;
  }
  void Await(int block) {
    const absl::Status status = model_->AwaitGradient(block);
    EXPECT_TRUE(status.ok()) << status;
  }

  Model& model() { return *model_; }
  Blocks& weights() { return weights_; }
  Blocks& gradients() { return gradients_; }

 private:
  Blocks weights_, gradients_;
  const bool bf16_weights_;
  std::vector<std::vector<kernels::Bf16>> rounded_;
  std::unique_ptr<Model> model_;
};

class MultiGpuModelCuda : public kernels::cuda::LateCudaTest {
 protected:
  void SetUp() override {
    LateCudaTest::SetUp();
#if TUG_CUDA_EMULATED
    kernels::emulation::SetDeviceCount(4);
#endif
    if (!IsSkipped() && Most() < 2) GTEST_SKIP() << "skipped: one GPU";
  }
  static int Most() { return std::min(4, static_cast<int>(kernels::cuda::ListDevices().size())); }

  // Compares every tensor.
  static void ExpectClose(const Blocks& gradients, const Blocks& expected, const Model& model) {
    for (size_t b = 0; b < expected.size(); ++b) {
      size_t offset = 0;
      for (const TensorSpec& tensor : model.blocks().blocks(static_cast<int>(b)).tensors()) {
        const size_t size = ElementCount(tensor);
        EXPECT_LE(Distance(std::span(gradients[b]).subspan(offset, size),
                           std::span(expected[b]).subspan(offset, size)),
                  kBound)
            << tensor.name();
        offset += size;
      }
    }
  }
};

TEST_F(MultiGpuModelCuda, HasTheGradientsOfOneGpuAndTheSameBitsAgain) {
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const bool tied : {false, true}) {
      if (kIsSlow && (family != ModelConfig::DECODER || !tied)) continue;
      ModelRig rig(Options(family, tied));  // 3 samples
      CudaModelRig one(rig);
      const LossSums losses = one.LossAndGradient(rig.Batch());
      for (int gpus = 2; gpus <= Most(); ++gpus) {
        const bool every = family == ModelConfig::DECODER && tied;
        if (!every && gpus != std::min(3, Most())) continue;
        SCOPED_TRACE(absl::StrCat(FamilyName(family), " tied ", tied, " GPUs ", gpus));
        Shared shared(rig, gpus);
        EXPECT_TRUE(shared.model().queues());
        const LossSums sums = shared.Run(rig.Batch());
        EXPECT_NEAR(sums.loss / losses.loss, 1, kLossBound);
        EXPECT_EQ(sums.targets, losses.targets);
        EXPECT_EQ(sums.correct, losses.correct);
        ExpectClose(shared.gradients(), one.gradients(), shared.model());
        const Blocks first = shared.gradients();
        EXPECT_EQ(shared.Run(rig.Batch()).loss, sums.loss);
        EXPECT_EQ(shared.gradients(), first);
      }
    }
  }
}

// Two addends give the same bits in any order.
TEST_F(MultiGpuModelCuda, AddsUpWhatEachGpuMakesOfItsSamples) {
  for (const bool bf16 : {false, true}) {
    ModelOptions options = Options(ModelConfig::DECODER, /*tied=*/true);
    if (bf16) options.train.set_precision(TrainConfig::BF16);
    ModelRig rig(options);
    if (bf16) {
      for (std::vector<float>& block : rig.weights()) {
        std::vector<kernels::Bf16> rounded(block.size());
        const auto size = static_cast<int64_t>(block.size());
        kernels::Bf16FromFloat(block.data(), rounded.data(), size);
        kernels::FloatFromBf16(rounded.data(), block.data(), size);
      }
    }
    CudaModelRig one(rig);
    double loss = one.LossAndGradient(rig.Batch(0, 2)).loss;
    Blocks sum = one.gradients();
    loss += one.LossAndGradient(rig.Batch(2, 1)).loss;
    const Blocks other = one.gradients();
    for (size_t b = 0; b < sum.size(); ++b) {
      for (size_t i = 0; i < sum[b].size(); ++i) sum[b][i] += other[b][i];
    }
    Shared shared(rig, 2, /*bf16_weights=*/bf16);
    EXPECT_EQ(shared.Run(rig.Batch()).loss, loss);
    EXPECT_EQ(shared.gradients(), sum);
  }
}

// With one sample per pass the other GPU has none.
TEST_F(MultiGpuModelCuda, KeepsGradientsOfPartialPassesToItself) {
  for (const bool tied : {false, true}) {
    ModelRig rig(Options(ModelConfig::DECODER, tied));
    CudaModelRig one(rig);
    Shared shared(rig, 2);
    for (int step = 0; step < 2; ++step) {
      double loss = 0, same = 0;
      for (int sample = 0; sample < 3; ++sample) {
        MicroBatch batch = rig.Batch(sample, 1);
        batch.accumulate = sample > 0;
        batch.partial = sample < 2;
        loss += one.LossAndGradient(batch).loss;
        same += shared.Run(batch).loss;
        if (step == 0) {
          EXPECT_EQ(std::isnan(shared.gradients()[0][0]), batch.partial);
        }
      }
      EXPECT_EQ(same, loss);
      EXPECT_EQ(shared.gradients(), one.gradients()) << "the other's are zeros";
    }
  }
}

// As in a worker: a block's weights change once its gradient was awaited.
TEST_F(MultiGpuModelCuda, TakesWeightsThatAreBoundAgain) {
  ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
  Shared shared(rig, Most());
  for (int step = 0; step < 3; ++step) {
    CudaModelRig one(rig);
    const double loss = one.LossAndGradient(rig.Batch()).loss;
    RunForward(shared.model(), rig.Batch());
    for (int b = shared.model().num_blocks() - 1; b >= 0; --b) {
      shared.model().Backward(b);
      shared.Await(b);
      for (float& weight : shared.weights()[static_cast<size_t>(b)]) weight *= 0.9f;
      if (b > 0) shared.Bind(b);
    }
    EXPECT_NEAR(shared.model().losses().loss / loss, 1, kLossBound) << "step " << step;
    ExpectClose(shared.gradients(), one.gradients(), shared.model());
    shared.Bind(0);
    rig.weights() = shared.weights();
  }
}

// Arrays belong to the caller again once the last Backward returns, although it only posts its
// call.
TEST_F(MultiGpuModelCuda, ReadsABatchNoMoreWhenItHasTaken) {
  ModelRig rig(Options(ModelConfig::ENCODER_DECODER, /*tied=*/false));
  Shared shared(rig, 2);
  const double loss = shared.Run(rig.Batch()).loss;
  const Blocks expected = shared.gradients();
  ModelRig other(Options(ModelConfig::ENCODER_DECODER, /*tied=*/false));
  RunForward(shared.model(), other.Batch());
  for (int b = shared.model().num_blocks() - 1; b >= 0; --b) shared.model().Backward(b);
  std::fill(other.tokens().begin(), other.tokens().end(), -1);
  std::fill(other.targets().begin(), other.targets().end(), -2);
  for (int b = 0; b < shared.model().num_blocks(); ++b) shared.Await(b);
  EXPECT_EQ(shared.model().losses().loss, loss);
  EXPECT_EQ(shared.gradients(), expected);
}

TEST_F(MultiGpuModelCuda, EvaluatesAndWritesLogits) {
  ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
  CudaModelRig one(rig);
  Shared shared(rig, Most());
  RunForward(shared.model(), rig.Batch(/*training=*/false));
  EXPECT_NEAR(shared.model().losses().loss / one.EvaluationLosses().loss, 1, kLossBound);
  std::vector<float> logits(kRigSymbols), same(kRigSymbols);
  one.model().Logits(std::span(rig.tokens()).first(7), logits);
  shared.model().Logits(std::span(rig.tokens()).first(7), same);
  EXPECT_EQ(logits, same);
}

TEST_F(MultiGpuModelCuda, LetsGoOfReleasedWeightsAtOnce) {
  ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
  Shared shared(rig, 2);
  const double loss = shared.Run(rig.Batch()).loss;
  for (int b = 0; b < shared.model().num_blocks(); ++b) {
    shared.Bind(b);
    shared.model().ReleaseWeights(b);
    auto& weights = shared.weights()[static_cast<size_t>(b)];
    std::fill(weights.begin(), weights.end(), std::nanf(""));
  }
  EXPECT_EQ(shared.Run(rig.Batch()).loss, loss);
}

// A GPU plans for its part of a micro-batch, and for blocks cut into parts.
TEST_F(MultiGpuModelCuda, SaysWhatItComputesOnAndPlansForAPart) {
  ModelOptions options = Options(ModelConfig::DECODER, /*tied=*/true);
  const auto made = NewMultiGpuModel({0, 1}, {.model = options});
  ASSERT_TRUE(made.ok()) << made.status();
  const auto facts = kernels::cuda::GetDeviceFacts();
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(made->device,
            absl::StrCat("2 x ", facts->name, ", ", facts->memory_bytes >> 30, " GiB"));
  options.max_micro_batch = 2;
  EXPECT_EQ(made->device_bytes, PredictDeviceBytes(options, false, 2).total());
}

TEST_F(MultiGpuModelCuda, AMissingGpuIsAnErrorWithItsNumber) {
  const ModelOptions options = Options(ModelConfig::DECODER, /*tied=*/true);
  const absl::Status some = NewMultiGpuModel({0, 1001}, {.model = options}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(some)) << some;
  EXPECT_TRUE(absl::StrContains(some.message(), "GPU 1001 cannot be used")) << some;
  const absl::Status none = NewMultiGpuModel({1000, 1001}, {.model = options}).status();
  EXPECT_TRUE(absl::IsUnavailable(none)) << none;
  EXPECT_TRUE(absl::StrContains(none.message(), "GPU 1000: no GPU")) << none;
}

// A group whose last GPU cannot connect.
class Unconnected final : public GpuGroup {
 public:
  explicit Unconnected(uint32_t world) : group_(NewGpuGroup(world)), world_(world) {}
  std::unique_ptr<GpuPeers> NewPeers(uint32_t rank, int gpu) override {
    if (rank + 1 < world_) return group_->NewPeers(rank, gpu);
    return std::make_unique<Lost>(rank, world_);
  }
  void Abort() override { group_->Abort(); }

 private:
  class Lost final : public GpuPeers {
   public:
    Lost(uint32_t rank, uint32_t world) : GpuPeers(rank, world) {}
    absl::Status Join() override { return absl::UnavailableError("NCCL: unhandled system error"); }
    absl::Status ReduceScatter(float*, uint64_t, const kernels::cuda::Stream&) override {
      return absl::OkStatus();
    }
    absl::Status AllGather(std::byte*, uint64_t, const kernels::cuda::Stream&) override {
      return absl::OkStatus();
    }
  };

  const std::unique_ptr<GpuGroup> group_;
  const uint32_t world_;
};

// Otherwise a worker with AUTO would fall back to the CPU although it has GPUs.
TEST_F(MultiGpuModelCuda, GpusThatCannotBeConnectedAreNoLackOfThem) {
  const ModelOptions options = Options(ModelConfig::DECODER, /*tied=*/true);
  const absl::Status status =
      NewMultiGpuModel({0, 1}, {.model = options}, std::make_shared<Unconnected>(2)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "GPU 1: NCCL: unhandled system error")) << status;
}

#if TUG_CUDA_EMULATED
// The second of two GPUs, with a silent first one: the other part is neither sent nor received.
class Silent final : public GpuPeers {
 public:
  explicit Silent(std::vector<float>& gathered) : GpuPeers(1, 2), gathered_(gathered) {}
  absl::Status Join() override { return absl::OkStatus(); }
  absl::Status ReduceScatter(float*, uint64_t, const kernels::cuda::Stream&) override {
    return absl::OkStatus();
  }
  // Copies all parts to `gathered_`, unchanged.
  absl::Status AllGather(std::byte* data, uint64_t bytes,
                         const kernels::cuda::Stream& stream) override {
    gathered_.resize(2 * bytes / sizeof(float));
    const absl::Status copied =
        kernels::cuda::CopyToHostAsync(gathered_.data(), data, 2 * bytes, stream);
    return copied.ok() ? stream.Synchronize() : copied;
  }

 private:
  std::vector<float>& gathered_;
};

TEST_F(MultiGpuModelCuda, AGpuCopiesItsPartOfABlockAlone) {
  ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
  const MicroBatch batch = rig.Batch(0, 0);  // no samples
  std::vector<float> gathered;
  auto made = NewStagedModel(0, {.model = rig.options()}, std::make_unique<Silent>(gathered));
  ASSERT_TRUE(made.ok()) << made.status();
  Model& model = *made->model;
  Blocks gradients;
  for (int b = 0; b < model.num_blocks(); ++b) {
    const std::vector<float>& weights = rig.weights()[static_cast<size_t>(b)];
    const size_t part = DevicePartBytes(weights.size() * sizeof(float), 2) / sizeof(float);
    model.BindWeights(b, {.fp32 = weights});
    ASSERT_EQ(gathered.size(), 2 * part);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (i < part) {
        EXPECT_TRUE(std::isnan(gathered[i])) << "block " << b << " element " << i;
      } else {
        EXPECT_EQ(gathered[i], weights[i]) << "block " << b << " element " << i;
      }
    }
    gradients.emplace_back(weights.size(), 7.0f);
  }
  for (int b = 0; b < model.num_blocks(); ++b) {
    model.BindGradient(b, gradients[static_cast<size_t>(b)]);
  }
  RunForward(model, batch);
  for (int b = model.num_blocks() - 1; b >= 0; --b) model.Backward(b);
  EXPECT_EQ(model.losses().targets, 0u);
  for (int b = 0; b < model.num_blocks(); ++b) {
    ASSERT_TRUE(model.AwaitGradient(b).ok());
    const std::vector<float>& gradient = gradients[static_cast<size_t>(b)];
    const size_t part = DevicePartBytes(gradient.size() * sizeof(float), 2) / sizeof(float);
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_EQ(gradient[i], i < part ? 7.0f : 0.0f) << "block " << b << " element " << i;
    }
  }
}

// At creation, before peers take part, so that first-use allocations and kernel loads are done.
TEST_F(MultiGpuModelCuda, HasRunAPassWhenItIsMade) {
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    ModelOptions options = Options(family, /*tied=*/false);
    options.train.set_precision(TrainConfig::BF16);
    OpProfile profile;
    options.profile = &profile;
    std::vector<float> gathered;
    const auto made = NewStagedModel(0, {.model = options}, std::make_unique<Silent>(gathered));
    ASSERT_TRUE(made.ok()) << made.status();
    for (const Op op : {Op::kEmbedding, Op::kProductForward, Op::kProductWeightGradient,
                        Op::kAttentionBackward, Op::kLoss}) {
      EXPECT_GT(profile.entries()[static_cast<size_t>(op)].time.count(), 0)
          << FamilyName(family) << ": " << kOpNames[static_cast<size_t>(op)];
    }
    EXPECT_TRUE(gathered.empty());
  }
}

TEST_F(MultiGpuModelCuda, AnErrorOfOneGpuIsTheModels) {
  for (const bool first : {false, true}) {
    ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
    auto made = NewMultiGpuModel({0, 1, 2}, {.model = rig.options()});
    ASSERT_TRUE(made.ok()) << made.status();
    Model& model = *made->model;
    Blocks gradients = rig.weights();
    for (int b = 0; b < model.num_blocks(); ++b) {
      model.BindWeights(b, {.fp32 = rig.weights()[static_cast<size_t>(b)]});
      model.BindGradient(b, gradients[static_cast<size_t>(b)]);
    }
    ASSERT_TRUE(model.Synchronize().ok());
    const int broken = first ? 0 : 1;
    kernels::emulation::FailAllocations(true, broken);
    RunForward(model, rig.Batch());
    for (int b = model.num_blocks() - 1; b >= 0; --b) model.Backward(b);
    model.losses();
    for (int b = model.num_blocks() - 1; b >= 0; --b) {
      const absl::Status status = model.AwaitGradient(b);
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("GPU ", broken, ": ")))
          << status;
    }
    kernels::emulation::FailAllocations(false);
    EXPECT_FALSE(model.Synchronize().ok());
  }
}

// As a worker's thread that never used a GPU does when it rolls back to a checkpoint: on another
// device, CUDA would allocate memory there.
TEST_F(MultiGpuModelCuda, ModelEndsOnItsOwnGpuFromAnyThread) {
  for (const bool destroyed : {false, true}) {
    ModelRig rig(Options(ModelConfig::DECODER, /*tied=*/true));
    auto made = NewMultiGpuModel({1}, {.model = rig.options()});
    ASSERT_TRUE(made.ok()) << made.status();
    std::thread([&] {
      EXPECT_EQ(kernels::emulation::ThisDevice(), 0);
      if (destroyed) {
        made->model.reset();
      } else {
        EXPECT_TRUE(made->model->Synchronize().ok());
      }
      EXPECT_EQ(kernels::emulation::ThisDevice(), 1);
    }).join();
  }
}

TEST_F(MultiGpuModelCuda, SaysWhichGpuHasTooLittleMemory) {
  kernels::emulation::FailAllocations(true, 1);
  const absl::Status status =
      NewMultiGpuModel({0, 1}, {.model = Options(ModelConfig::DECODER, true)}).status();
  kernels::emulation::FailAllocations(false);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "GPU 1: ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "train.micro_batch")) << status;
}
#endif

}  // namespace
}  // namespace tug
