// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include "config/placement_mode.h"
#include "kernels/cuda/attention/attention_backward_plan.h"
#include "kernels/linear.h"
#include "model/backend.h"
#include "model/layers/activations.h"
#include "model/layers/block_window.h"
#include "model/layout.h"

namespace tug {
namespace {

// Excludes tables that are only looked up, never multiplied.
bool IsMatrixOfProducts(const TensorSpec& tensor, const ModelShape& shape, int block) {
  if (tensor.shape_size() != 2 || tensor.name().ends_with("wpe.weight")) return false;
  const bool is_tied = shape.tied_head && block == TiedBlockOf(shape);
  return is_tied || !tensor.name().ends_with("wte.weight");
}

// Whether weights are pulled in the type that the model computes in.
bool StaysBf16(const ModelOptions& options, CommConfig::Format pull_format) {
  return pull_format == CommConfig::BF16 && options.train.precision() == TrainConfig::BF16;
}

uint64_t ActivationBytes(const ModelOptions& options, const ActivationOptions& activations) {
  return options.train.precision() == TrainConfig::BF16
             ? Activations<kernels::Bf16>::SizeBytes(activations)
             : Activations<float>::SizeBytes(activations);
}

}  // namespace

uint64_t PredictActivationBytes(const ModelOptions& options) {
  return ActivationBytes(options, ActivationOptionsOf(options));
}

namespace {

// Bytes of packed copies, by block.
std::vector<uint64_t> PackedBytes(const ModelOptions& options, const BlockTable& table) {
  const ModelShape shape = ModelShapeOf(options.config, options.symbols, options.classes);
  std::vector<uint64_t> bytes(static_cast<size_t>(table.blocks_size()), 0);
  if (options.train.precision() != TrainConfig::BF16) return bytes;
  for (int block = 0; block < table.blocks_size(); ++block) {
    for (const TensorSpec& tensor : table.blocks(block).tensors()) {
      if (!IsMatrixOfProducts(tensor, shape, block)) continue;
      bytes[static_cast<size_t>(block)] += kernels::LinearWeights<kernels::Bf16>::SizeBytes(
          static_cast<int64_t>(tensor.shape(0)), static_cast<int64_t>(tensor.shape(1)));
    }
  }
  return bytes;
}

uint64_t WeightBytes(const std::vector<BlockWeightBytes>& blocks, const ModelShape& shape,
                     const PlacementConfig& placement) {
  BlockWeightBytes most;
  if (PlacementModeOf(placement.kind()).frees_weights) {
    std::optional<uint32_t> tied;
    if (shape.tied_head) tied = static_cast<uint32_t>(TiedBlockOf(shape));
    const BlockWindow window(static_cast<uint32_t>(blocks.size()), placement.prefetch_blocks(),
                             tied);
    most = MostInWindow(window, blocks);
  } else {
    for (const BlockWeightBytes& block : blocks) {
      most.own += block.own;
      most.copy += block.copy;
    }
  }
  return most.own + most.copy;
}

uint64_t GradientBytes(std::vector<uint64_t> parameters, const WorkerHolding& holding) {
  uint64_t elements = 0;
  if (PlacementModeOf(holding.placement.kind()).frees_gradients) {
    std::sort(parameters.begin(), parameters.end(), std::greater<>());
    const uint32_t kept = GradientBlocks(holding.placement, holding.micro_batches,
                                         static_cast<uint32_t>(parameters.size()));
    elements = std::accumulate(parameters.begin(), parameters.begin() + kept, uint64_t{0});
  } else {
    elements = std::accumulate(parameters.begin(), parameters.end(), uint64_t{0}) *
               holding.virtual_workers;
  }
  return elements * sizeof(float);
}

}  // namespace

uint64_t PackedWeightBytes(const ModelOptions& options) {
  const std::vector<uint64_t> bytes =
      PackedBytes(options, ModelLayout(options.config, options.symbols, options.classes));
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

WorkerHolding WorkerHoldingOf(const JobConfig& config, uint32_t virtual_workers) {
  const TrainConfig& train = config.train();
  return {.placement = config.placement(),
          .virtual_workers = virtual_workers,
          .micro_batches =
              train.global_batch() / config.cluster().virtual_workers() / train.micro_batch()};
}

HeldBytes PredictHeldBytes(const ModelOptions& options, CommConfig::Format pull_format,
                           const WorkerHolding& holding) {
  const BlockTable table = ModelLayout(options.config, options.symbols, options.classes);
  std::vector<uint64_t> packed = PackedBytes(options, table);
  if (holding.on_gpu) packed.assign(packed.size(), 0);
  const uint64_t element_bytes =
      StaysBf16(options, pull_format) ? sizeof(kernels::Bf16) : sizeof(float);
  std::vector<BlockWeightBytes> weights;
  std::vector<uint64_t> parameters;
  for (size_t block = 0; block < packed.size(); ++block) {
    parameters.push_back(ElementCount(table.blocks(static_cast<int>(block))));
    const bool in_place = !holding.in_place.empty() && holding.in_place[block];
    weights.push_back(
        {.own = in_place ? 0 : parameters.back() * element_bytes, .copy = packed[block]});
  }
  const ModelShape shape = ModelShapeOf(options.config, options.symbols, options.classes);
  return {.weights = WeightBytes(weights, shape, holding.placement),
          .gradients = GradientBytes(std::move(parameters), holding)};
}

uint64_t PredictWorkerBytes(const ModelOptions& options, CommConfig::Format pull_format,
                            const WorkerHolding& holding) {
  const HeldBytes held = PredictHeldBytes(options, pull_format, holding);
  const uint64_t activations = holding.on_gpu ? 0 : PredictActivationBytes(options);
  return held.weights + held.gradients + activations + kProcessBytes;
}

namespace {

// Bytes of copies per element of the tensor, on a GPU that computes in bf16.
uint64_t CopyBytes(const TensorSpec& tensor, const ModelShape& shape, int block,
                   bool bf16_weights) {
  if (tensor.shape_size() == 2) {
    return !bf16_weights && IsMatrixOfProducts(tensor, shape, block) ? sizeof(kernels::Bf16) : 0;
  }
  const std::string& name = tensor.name();
  const bool rounded =
      name.ends_with(".bias") && name.find("ln_") == std::string::npos && name != "classifier.bias";
  return (rounded ? sizeof(kernels::Bf16) : 0) + (bf16_weights ? sizeof(float) : 0);
}

// Maximum over the layers' attentions: all have a context's queries and keys, and a decoder's are
// causal, except those over an encoder. Maximum over all batch sizes too: with fewer samples a
// thread block has fewer tiles, so more blocks have sums.
uint64_t AttentionSumBytes(const ModelOptions& options, const ModelShape& shape) {
  if (options.inference || options.train.precision() != TrainConfig::BF16) return 0;
  kernels::AttentionShape attention = {.queries = shape.context,
                                       .keys = shape.context,
                                       .heads = shape.heads,
                                       .head_dim = shape.width / shape.heads,
                                       .causal = shape.family == ModelConfig::DECODER};
  int64_t most = 0;
  for (attention.batch = 1; attention.batch <= options.max_micro_batch; ++attention.batch) {
    most = std::max(most, kernels::PlanAttentionBackward(attention).scratch_bytes);
  }
  return static_cast<uint64_t>(most);
}

}  // namespace

DeviceBytes PredictDeviceBytes(const ModelOptions& options, bool bf16_weights, uint32_t gpus,
                               uint64_t encoder_bytes) {
  const BlockTable table = ModelLayout(options.config, options.symbols, options.classes);
  const ModelShape shape = ModelShapeOf(options.config, options.symbols, options.classes);
  const bool bf16 = options.train.precision() == TrainConfig::BF16;
  DeviceBytes bytes{.encoder = encoder_bytes, .peers = gpus > 1 ? kGpuPeersBytes : 0};
  for (int block = 0; block < table.blocks_size(); ++block) {
    const uint64_t elements = ElementCount(table.blocks(block));
    bytes.weights +=
        DeviceBlockBytes(elements, bf16_weights ? sizeof(kernels::Bf16) : sizeof(float), gpus);
    bytes.gradients += DeviceBlockBytes(elements, sizeof(float), gpus);
    for (const TensorSpec& tensor : table.blocks(block).tensors()) {
      if (bf16)
        bytes.copies += ElementCount(tensor) * CopyBytes(tensor, shape, block, bf16_weights);
    }
  }
  ActivationOptions activations = ActivationOptionsOf(options);
  activations.logits_stride =
      (activations.logits_stride + kGpuLogitsStep - 1) / kGpuLogitsStep * kGpuLogitsStep;
  activations.logits_gradient_bytes = kGpuLogitsGradientBytes;
  bytes.activations = ActivationBytes(options, activations);
  bytes.attention = AttentionSumBytes(options, shape);
  return bytes;
}

uint32_t GradientBlocks(const PlacementConfig& placement, uint64_t micro_batches, uint32_t blocks) {
  return micro_batches > 1 ? blocks : std::min(placement.gradient_blocks(), blocks);
}

uint64_t LocalStepBytes(const ModelOptions& options, CommConfig::Format pull_format,
                        const SyncConfig& sync, const OptimizerConfig& optimizer,
                        uint32_t virtual_workers) {
  if (sync.local_steps() <= 1) return 0;
  const uint64_t parameters =
      ElementCount(ModelLayout(options.config, options.symbols, options.classes));
  const uint64_t states = optimizer.algorithm() != OptimizerConfig::SGD ? 2
                          : optimizer.sgd().momentum() > 0              ? 1
                                                                        : 0;
  const uint64_t wider =
      StaysBf16(options, pull_format) ? sizeof(float) - sizeof(kernels::Bf16) : 0;
  return parameters * (wider + (1 + states) * sizeof(float) * virtual_workers);
}

uint64_t LecturesActivationBytes(const ModelOptions& options) {
  const ModelConfig& config = options.config;
  const uint64_t s = config.context(), h = config.width(), a = config.heads();
  const auto b = static_cast<uint64_t>(options.max_micro_batch);
  return config.layers() * (34 * s * b * h + 5 * a * s * s * b);
}

}  // namespace tug
