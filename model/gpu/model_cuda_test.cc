// SPDX-License-Identifier: Apache-2.0
// A model on the GPU against the same one on the CPU: weights, batch and dropped elements are
// equal.
//
// Bounds: relative for a loss; for every gradient tensor, the L2 norm of the difference relative to
// the CPU's norm. FP32: sums of up to 72 terms in another order, each off by about 2^-24 per
// doubling of its terms, through two layers and back; emulated at most 2e-6, for cross-attention's
// queries. BF16: as far from FP32 as the CPU's may be (reasons: model_precision_test.cc); from the
// CPU's BF16 sqrt(2) times as far, since each has its own rounding errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "kernels/adamw.h"
#include "kernels/bf16.h"
#include "kernels/cuda/device/cuda_test_support.h"
#include "model/backend/cpu_backend.h"
#include "model/gpu/cuda_model_rig.h"
#include "model/transformer/create_model.h"
#include "model/transformer/model_rig.h"

namespace tug {
namespace {

using kernels::cuda::CudaTest;

constexpr double kFp32LossBound = 1e-6;
constexpr double kFp32Bound = 1e-5;
constexpr double kBf16LossBound = 2e-3;  // from FP32
constexpr double kBf16Bound = 0.03;      // from FP32
// Between two bf16 models, whose errors are independent: sqrt(2) times as much. The CPU's errors
// depend on its instruction set.
constexpr double kBf16CpuLossBound = 2.8e-3;
constexpr double kBf16CpuBound = 0.042;
constexpr double kBf16WeightBound = 5e-3;  // of a block after four steps of about 1% each

enum class Setup { kTied, kUntied };
using Case = std::tuple<ModelConfig::Family, ModelConfig::NormPlace, TrainConfig::Precision, Setup>;

// Together, the setups use each choice once. With BF16, attention with heads of 32 runs on tensor
// cores, attention with heads of 12 does not; the activation is GELU, because ReLU's derivative
// jumps where a rounding changes a sign.
ModelOptions OptionsOf(const Case& of) {
  const auto [family, norm, precision, setup] = of;
  const bool tied = setup == Setup::kTied;
  ModelOptions options = SmallModel(family, tied ? 0.2 : 0.0);
  ModelConfig& config = options.config;
  config.set_norm(norm);
  config.set_tied_head(tied);
  config.set_bias(tied);
  const bool relu = !tied && precision == TrainConfig::FP32;
  config.set_activation(relu ? ModelConfig::RELU : ModelConfig::GELU);
  options.train.set_precision(precision);
  options.train.set_label_smoothing(tied ? 0.1 : 0.0);
  options.train.set_z_loss(tied ? 0.01 : 0.0);
  if (precision == TrainConfig::BF16) {
    config.set_heads(2);
    if (tied) config.set_width(64);
    if (tied) config.set_mlp_width(136);
  }
  return options;
}

// Emulated, a pass takes half a second, and thirty times that with memory checks: then only a few
// cases run, which cover each operation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif

std::vector<Case> Cases() {
  if (kIsSlow) {
    return {{ModelConfig::DECODER, ModelConfig::PRE, TrainConfig::FP32, Setup::kTied},
            {ModelConfig::ENCODER, ModelConfig::POST, TrainConfig::FP32, Setup::kUntied},
            {ModelConfig::ENCODER_DECODER, ModelConfig::PRE, TrainConfig::BF16, Setup::kTied}};
  }
  std::vector<Case> cases;
  for (const auto family :
       {ModelConfig::DECODER, ModelConfig::ENCODER, ModelConfig::ENCODER_DECODER}) {
    for (const auto norm : {ModelConfig::PRE, ModelConfig::POST}) {
      for (const auto precision : {TrainConfig::FP32, TrainConfig::BF16}) {
        for (const auto setup : {Setup::kTied, Setup::kUntied}) {
          cases.emplace_back(family, norm, precision, setup);
        }
      }
    }
  }
  return cases;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto [family, norm, precision, setup] = info.param;
  return FamilyName(family) + "_" + ModelConfig::NormPlace_Name(norm) + "_" +
         TrainConfig::Precision_Name(precision) + (setup == Setup::kTied ? "_tied" : "_untied");
}

// A CPU device that records the smallest activation input, relative to the root mean square of its
// layer's inputs.
class ActivationInputs final : public ComputeDevice {
 public:
  absl::StatusOr<std::unique_ptr<Backend<float>>> NewFp32Backend() override {
    return std::make_unique<Fp32>(*this);
  }
  absl::StatusOr<std::unique_ptr<Backend<kernels::Bf16>>> NewBf16Backend() override {
    return absl::UnimplementedError("bf16");
  }
  double smallest() const { return smallest_; }

 private:
  class Fp32 final : public CpuBackend<float> {
   public:
    explicit Fp32(ActivationInputs& inputs) : CpuBackend(inputs.pool_), inputs_(inputs) {}
    void LinearActivationForward(const WeightMatrix<float>& w,
                                 const kernels::LinearActivationForwardArgs<float>& args) override {
      CpuBackend::LinearActivationForward(w, args);
      const std::span<const float> all(args.pre, static_cast<size_t>(args.rows * w.out()));
      const double scale = Norm2(all) / std::sqrt(static_cast<double>(all.size()));
      for (const float u : all) {
        inputs_.smallest_ = std::min(inputs_.smallest_, std::abs(u) / scale);
      }
    }

   private:
    ActivationInputs& inputs_;
  };

  ThreadPool pool_{1};
  double smallest_ = 1;
};

// ReLU's derivative jumps at 0. If one of about 5000 inputs is within FP32's rounding of 0 (1e-6 of
// their size), the GPU's may have the other sign, and a gradient be off by a whole addend. Picks
// tokens for which no input is within 1e-4.
void AvoidTheJumpOfRelu(ModelRig& cpu) {
  if (cpu.options().config.activation() != ModelConfig::RELU) return;
  for (int attempt = 0; attempt < 30; ++attempt) {
    ActivationInputs inputs;
    ModelRig rig(cpu.options(), inputs);
    rig.ShrinkMatrices();
    rig.tokens() = cpu.tokens();
    rig.Forward(rig.Batch());
    std::cout << "smallest input of ReLU: " << inputs.smallest() << "\n";
    if (inputs.smallest() >= 1e-4) return;
    for (int32_t& token : cpu.tokens()) token = (token + 1) % static_cast<int32_t>(kRigSymbols);
  }
  ADD_FAILURE() << "no tokens keep ReLU's inputs away from 0";
}

class ModelCuda : public CudaTest, public testing::WithParamInterface<Case> {
 protected:
  bool is_bf16() const { return std::get<2>(GetParam()) == TrainConfig::BF16; }
  double bound() const { return is_bf16() ? kBf16CpuBound : kFp32Bound; }
  double loss_bound() const { return is_bf16() ? kBf16CpuLossBound : kFp32LossBound; }

  // `gradients`: of the same model as `cpu`. Prints the worst tensor.
  void ExpectNearGradients(ModelRig& cpu, const std::vector<std::vector<float>>& gradients,
                           double bound) {
    size_t block = 0, offset = 0;
    double worst = 0;
    std::string worst_name;
    cpu.ForEachTensor(
        [&](const TensorSpec& tensor, std::span<float>, std::span<const float> expected) {
          if (offset == gradients[block].size()) {
            ++block;
            offset = 0;
          }
          const double distance =
              Distance(std::span(gradients[block]).subspan(offset, expected.size()), expected);
          EXPECT_LE(distance, bound) << tensor.name();
          offset += expected.size();
          if (distance <= worst) return;
          worst = distance;
          worst_name = tensor.name();
        });
    std::cout << "gradients: worst " << worst << " (" << worst_name << ")\n";
  }
};

TEST_P(ModelCuda, LossAndEveryGradientAreTheCpus) {
  ModelOptions options = OptionsOf(GetParam());
  ModelRig cpu(options);
  cpu.ShrinkMatrices();
  AvoidTheJumpOfRelu(cpu);
  CudaModelRig gpu(cpu);
  const LossSums expected = cpu.LossAndGradient(cpu.Batch());
  const LossSums losses = gpu.LossAndGradient(cpu.Batch());
  ASSERT_TRUE(gpu.model().Synchronize().ok()) << gpu.model().status();
  std::cout << "loss " << losses.loss / expected.loss - 1 << "\n";
  EXPECT_NEAR(losses.loss / expected.loss, 1, loss_bound());
  EXPECT_EQ(losses.targets, expected.targets);
  if (!is_bf16()) {
    EXPECT_EQ(losses.correct, expected.correct);
  }
  const auto gradients = gpu.gradients();
  ExpectNearGradients(cpu, gradients, bound());

  EXPECT_EQ(gpu.LossAndGradient(cpu.Batch()).loss, losses.loss) << "at a second run";
  EXPECT_EQ(gpu.gradients(), gradients) << "at a second run";

  if (!is_bf16()) return;
  options.train.set_precision(TrainConfig::FP32);
  ModelRig fp32(options);
  fp32.ShrinkMatrices();
  EXPECT_NEAR(losses.loss / fp32.LossAndGradient(fp32.Batch()).loss, 1, kBf16LossBound);
  ExpectNearGradients(fp32, gradients, kBf16Bound);
}

TEST_P(ModelCuda, EvaluationAndLogitsAreTheCpus) {
  ModelOptions options = OptionsOf(GetParam());
  ModelRig cpu(options);
  cpu.ShrinkMatrices();
  for (const bool inference : {false, true}) {
    options.inference = inference;
    CudaModelRig gpu(cpu, options);
    EXPECT_NEAR(gpu.EvaluationLosses().loss / cpu.EvaluationLoss(), 1, loss_bound());
    const bool is_encoder = options.config.family() == ModelConfig::ENCODER;
    std::vector<float> expected(is_encoder ? kRigClasses : kRigSymbols);
    std::vector<float> logits(expected.size());
    const auto logits_of = [&](Model& model, std::vector<float>& to) {
      if (options.config.family() == ModelConfig::DECODER) {
        model.Logits(std::span(cpu.tokens()).first(7), to);
      } else {
        model.Logits(cpu.Batch(1, 1, /*training=*/false), is_encoder ? 0 : 4, to);
      }
    };
    logits_of(cpu.model(), expected);
    logits_of(gpu.model(), logits);
    EXPECT_LE(Distance(logits, expected), bound());
    EXPECT_TRUE(gpu.model().status().ok()) << gpu.model().status();
  }
}

TEST_P(ModelCuda, MicroBatchesAddUpToTheBatch) {
  ModelRig cpu(OptionsOf(GetParam()));
  cpu.ShrinkMatrices();
  AvoidTheJumpOfRelu(cpu);
  CudaModelRig gpu(cpu);
  const double loss = cpu.LossAndGradient(cpu.Batch()).loss;
  MicroBatch first = cpu.Batch(0, 1), second = cpu.Batch(1, 2);
  second.accumulate = true;
  double sum = gpu.LossAndGradient(first).loss;
  sum += gpu.LossAndGradient(second).loss;
  EXPECT_NEAR(sum / loss, 1, loss_bound());
  ExpectNearGradients(cpu, gpu.gradients(), bound());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelCuda, testing::ValuesIn(Cases()), NameOf);

struct Recompute {
  TrainConfig::Recompute kind;
  uint32_t layers;
};

class ModelCudaStep : public CudaTest {};

TEST_F(ModelCudaStep, RecomputationNeverChangesABit) {
  for (const auto& [family, norm, precision] :
       {std::tuple(ModelConfig::DECODER, ModelConfig::PRE, TrainConfig::BF16),
        std::tuple(ModelConfig::ENCODER, ModelConfig::POST, TrainConfig::FP32),
        std::tuple(ModelConfig::ENCODER_DECODER, ModelConfig::PRE, TrainConfig::FP32)}) {
    ModelOptions options = OptionsOf({family, norm, precision, Setup::kTied});
    options.config.set_layers(3);
    ModelRig cpu(options);
    CudaModelRig none(cpu);
    const double loss = none.LossAndGradient(cpu.Batch()).loss;
    const auto gradients = none.gradients();
    for (const Recompute& recompute :
         {Recompute{TrainConfig::FULL, 1}, Recompute{TrainConfig::SELECTIVE, 1},
          Recompute{TrainConfig::UNIFORM, 2}, Recompute{TrainConfig::BLOCK, 1}}) {
      SCOPED_TRACE(FamilyName(family) + " " + TrainConfig::Recompute_Name(recompute.kind));
      options.train.set_recompute(recompute.kind);
      options.train.set_recompute_layers(recompute.layers);
      CudaModelRig gpu(cpu, options);
      EXPECT_EQ(gpu.LossAndGradient(cpu.Batch()).loss, loss);
      EXPECT_EQ(gpu.gradients(), gradients);
      if (kIsSlow) return;
    }
  }
}

// Weights pulled as bf16 are read in place; floats are copied. The bits are the same.
TEST_F(ModelCudaStep, ReadsWeightsInBf16) {
  const ModelOptions options =
      OptionsOf({ModelConfig::DECODER, ModelConfig::PRE, TrainConfig::BF16, Setup::kTied});
  ModelRig cpu(options);
  std::vector<std::vector<kernels::Bf16>> rounded;
  for (std::vector<float>& block : cpu.weights()) {
    const auto size = static_cast<int64_t>(block.size());
    kernels::Bf16FromFloat(block.data(), rounded.emplace_back(block.size()).data(), size);
    kernels::FloatFromBf16(rounded.back().data(), block.data(), size);
  }
  CudaModelRig widened(cpu), narrow(cpu);
  std::vector<kernels::cuda::DeviceBuffer> weights;
  for (size_t b = 0; b < rounded.size(); ++b) {
    weights.push_back(narrow.OnGpu(rounded[b]));
    narrow.model().BindWeights(static_cast<int>(b),
                               {.bf16 = {weights[b].As<kernels::Bf16>(), rounded[b].size()}});
  }
  EXPECT_EQ(narrow.LossAndGradient(cpu.Batch()).loss, widened.LossAndGradient(cpu.Batch()).loss);
  EXPECT_EQ(narrow.gradients(), widened.gradients());
  // Only copies of the biases remain.
  EXPECT_LT(narrow.model().weight_copy_bytes(), widened.model().weight_copy_bytes() / 10);
  for (int b = 0; b < widened.model().num_blocks(); ++b) widened.model().ReleaseWeights(b);
  EXPECT_EQ(widened.model().weight_copy_bytes(), 0u);
}

// Synchronized only by an event on the compute stream.
TEST_F(ModelCudaStep, AnotherStreamCopiesAGradientAsSoonAsItIsComplete) {
  ModelRig cpu(SmallModel(ModelConfig::DECODER, 0.1));
  CudaModelRig gpu(cpu);
  RunForward(gpu.model(), cpu.Batch());
  std::vector<kernels::cuda::Event> complete;
  std::vector<kernels::cuda::PinnedBuffer> copies;
  for (int b = gpu.model().num_blocks() - 1; b >= 0; --b) {
    gpu.model().Backward(b);
    auto event = kernels::cuda::Event::Create();
    const auto& gradient = gpu.gradient(static_cast<size_t>(b));
    auto copy = kernels::cuda::PinnedBuffer::Create(gradient.size_bytes());
    ASSERT_TRUE(event.ok() && copy.ok());
    ASSERT_TRUE(event->Record(gpu.stream()).ok());
    ASSERT_TRUE(stream().WaitFor(*event).ok());
    ASSERT_TRUE(kernels::cuda::CopyToHostAsync(copy->data(), gradient.data(), gradient.size_bytes(),
                                               stream())
                    .ok());
    complete.push_back(*std::move(event));
    copies.push_back(*std::move(copy));
  }
  ASSERT_TRUE(stream().Synchronize().ok());
  const auto gradients = gpu.gradients();
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto& expected = gradients[gradients.size() - 1 - i];
    EXPECT_EQ(std::memcmp(copies[i].data(), expected.data(), copies[i].size_bytes()), 0);
  }
}

// Losses are those of each step's weights. An update moves a weight by at most lr / eps = 1 times
// the error of its gradient, which is that of one target, and twice that for the moments.
TEST_F(ModelCudaStep, StaysBesideTheCpuOverAdamWSteps) {
  for (const auto& [family, precision] :
       {std::tuple(ModelConfig::DECODER, TrainConfig::FP32),
        std::tuple(ModelConfig::ENCODER, TrainConfig::FP32),
        std::tuple(ModelConfig::ENCODER_DECODER, TrainConfig::FP32),
        std::tuple(ModelConfig::DECODER, TrainConfig::BF16)}) {
    SCOPED_TRACE(FamilyName(family) + " " + TrainConfig::Precision_Name(precision));
    const bool fp32 = precision == TrainConfig::FP32;
    ModelOptions options = SmallModel(family, 0.1);
    options.train.set_precision(precision);
    ModelRig cpu(options);
    cpu.ShrinkMatrices();
    CudaModelRig gpu(cpu);
    std::vector<std::vector<float>> m, v;
    for (const auto& block : cpu.weights()) {
      m.emplace_back(block.size());
      v.emplace_back(block.size());
    }
    kernels::AdamWParams params = {.lr = 0.01f, .eps = 0.01f, .weight_decay = 0.1f};
    double first = 0, last = 0;
    for (params.t = 1; params.t <= 4; ++params.t) {
      MicroBatch batch = cpu.Batch();
      batch.dropout.step = static_cast<uint32_t>(params.t);
      const LossSums losses = cpu.LossAndGradient(batch);
      EXPECT_NEAR(gpu.LossAndGradient(batch).loss / losses.loss, 1,
                  fp32 ? kFp32Bound : kBf16CpuLossBound)
          << "step " << params.t;
      params.gradient_scale = 1.0f / static_cast<float>(losses.targets);
      for (size_t b = 0; b < m.size(); ++b) {
        std::vector<float>& w = cpu.weights()[b];
        kernels::AdamWStep(params, {static_cast<int64_t>(w.size()), cpu.gradients()[b].data(),
                                    w.data(), w.data(), m[b].data(), v[b].data()});
      }
      cpu.Bind();
      gpu.AdamWStep(params);
      if (params.t == 1) first = losses.loss;
      last = losses.loss;
    }
    EXPECT_LT(last, first);
    const auto weights = gpu.weights();
    for (size_t b = 0; b < weights.size(); ++b) {
      const double distance = Distance(weights[b], cpu.weights()[b]);
      EXPECT_LE(distance, fp32 ? kFp32Bound : kBf16WeightBound) << "block " << b;
    }
    if (kIsSlow) break;
  }
}

TEST_F(ModelCudaStep, TooLittleMemoryIsAnErrorThatSaysWhatHelps) {
  const auto device = NewCudaDevice(0);
  ASSERT_TRUE(device.ok()) << device.status();
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.max_micro_batch = 1 << 30;
  const absl::Status status = CreateModel(options, **device).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  for (const char* part :
       {"activations", "bytes requested", "train.micro_batch", "train.recompute"}) {
    EXPECT_NE(status.ToString().find(part), std::string::npos) << part << " in " << status;
  }
  options.max_micro_batch = 1;
  EXPECT_TRUE(CreateModel(options, **device).ok());
}

// Heads too wide for attention on a GPU: later operations are not computed, but all calls return.
TEST_F(ModelCudaStep, AnOperationThatFailsIsReportedByStatus) {
  ModelOptions options = SmallModel(ModelConfig::DECODER);
  options.config.set_width(264);
  options.config.set_heads(2);
  ModelRig cpu(options);
  CudaModelRig gpu(cpu);
  const LossSums losses = gpu.LossAndGradient(cpu.Batch());
  EXPECT_EQ(losses.loss, 0);
  const absl::Status status = gpu.model().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.ToString().find("head_dim 132 is above 128"), std::string::npos) << status;
  EXPECT_EQ(gpu.model().Synchronize(), status);
  for (const auto& block : gpu.gradients()) {
    EXPECT_TRUE(std::all_of(block.begin(), block.end(), [](float g) { return std::isnan(g); }));
  }
  std::vector<float> logits(kRigSymbols, 5.0f);
  gpu.model().Logits(std::span(cpu.tokens()).first(7), logits);
  EXPECT_EQ(gpu.model().status(), status);
}

}  // namespace
}  // namespace tug
