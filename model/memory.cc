#include "model/memory.h"

#include "kernels/linear.h"
#include "model/activations.h"
#include "model/layout.h"

namespace tug {
namespace {

// Tables that are only looked up, never multiplied with.
bool IsMatrixOfProducts(const TensorSpec& tensor, const ModelShape& shape, int block) {
  if (tensor.shape_size() != 2 || tensor.name().ends_with("wpe.weight")) return false;
  const bool is_tied = shape.tied_head && block == TiedBlockOf(shape);
  return is_tied || !tensor.name().ends_with("wte.weight");
}

// Weights are pulled as what the model computes in.
bool StaysBf16(const ModelOptions& options, CommConfig::Format pull_format) {
  return pull_format == CommConfig::BF16 && options.train.precision() == TrainConfig::BF16;
}

}  // namespace

uint64_t PredictActivationBytes(const ModelOptions& options) {
  const ActivationOptions activations = ActivationOptionsOf(options);
  return options.train.precision() == TrainConfig::BF16
             ? Activations<kernels::Bf16>::SizeBytes(activations)
             : Activations<float>::SizeBytes(activations);
}

uint64_t PackedWeightBytes(const ModelOptions& options) {
  if (options.train.precision() != TrainConfig::BF16) return 0;
  const ModelShape shape = ModelShapeOf(options.config, options.symbols, options.classes);
  const BlockTable table = ModelLayout(options.config, options.symbols, options.classes);
  uint64_t bytes = 0;
  for (int block = 0; block < table.blocks_size(); ++block) {
    for (const TensorSpec& tensor : table.blocks(block).tensors()) {
      if (!IsMatrixOfProducts(tensor, shape, block)) continue;
      bytes += kernels::LinearWeights<kernels::Bf16>::SizeBytes(
          static_cast<int64_t>(tensor.shape(0)), static_cast<int64_t>(tensor.shape(1)));
    }
  }
  return bytes;
}

uint64_t PredictWorkerBytes(const ModelOptions& options, CommConfig::Format pull_format,
                            uint32_t virtual_workers) {
  const uint64_t parameters =
      ElementCount(ModelLayout(options.config, options.symbols, options.classes));
  const uint64_t weight_bytes =
      StaysBf16(options, pull_format) ? sizeof(kernels::Bf16) : sizeof(float);
  return parameters * (weight_bytes + sizeof(float) * virtual_workers) +
         PackedWeightBytes(options) + PredictActivationBytes(options) + kProcessBytes;
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
