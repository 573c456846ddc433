// SPDX-License-Identifier: Apache-2.0
#include "model/transformer/create_model.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "model/backend/cpu_backend.h"
#include "model/transformer/transformer_model.h"

namespace tug {
namespace {

// Number of elements that kernels/dropout.h can number.
constexpr uint64_t kLargestSample = uint64_t{1} << 34;

absl::Status CheckConfig(const ModelConfig& config) {
  if (config.family() == ModelConfig::FAMILY_DEFAULT ||
      config.norm() == ModelConfig::NORM_DEFAULT ||
      config.activation() == ModelConfig::ACTIVATION_DEFAULT) {
    return absl::InvalidArgumentError(
        "model.family, model.norm and model.activation must be chosen");
  }
  if (config.layers() < 1 || config.heads() < 1 || config.width() < 1 || config.context() < 1 ||
      config.mlp_width() < 1) {
    return absl::InvalidArgumentError(
        "model.layers, model.heads, model.width, model.mlp_width and model.context must be at "
        "least 1");
  }
  if (config.width() % config.heads() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.width ", config.width(), " must be a multiple of model.heads ", config.heads()));
  }
  if (!(config.dropout() >= 0 && static_cast<float>(config.dropout()) < 1)) {
    return absl::InvalidArgumentError("model.dropout must lie in [0, 1)");
  }
  const uint64_t context = config.context();
  const uint64_t attention_row = (context + 63) / 64 * 64;
  if (context > kLargestSample / attention_row / config.heads() ||
      context > kLargestSample / config.width()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.context ", context, " is too long for model.heads ", config.heads(),
                     " and model.width ", config.width(), ": lower model.context"));
  }
  return absl::OkStatus();
}

absl::Status CheckTrain(const TrainConfig& train, uint32_t layers) {
  if (train.precision() == TrainConfig::PRECISION_DEFAULT ||
      train.recompute() == TrainConfig::RECOMPUTE_DEFAULT) {
    return absl::InvalidArgumentError("train.precision and train.recompute must be chosen");
  }
  const bool reads_layers =
      train.recompute() == TrainConfig::UNIFORM || train.recompute() == TrainConfig::BLOCK;
  if (reads_layers && (train.recompute_layers() < 1 || train.recompute_layers() > layers)) {
    return absl::InvalidArgumentError(absl::StrCat("train.recompute_layers ",
                                                   train.recompute_layers(),
                                                   " must lie in 1..model.layers = ", layers));
  }
  if (!(train.label_smoothing() >= 0 && train.label_smoothing() < 1) || !(train.z_loss() >= 0)) {
    return absl::InvalidArgumentError(
        "train.label_smoothing must lie in [0, 1) and train.z_loss must not be negative");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelOptions& options, ThreadPool& pool) {
  CpuDevice cpu(pool);
  return CreateModel(options, cpu);
}

absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelOptions& options,
                                                   ComputeDevice& device) {
  if (absl::Status status = CheckConfig(options.config); !status.ok()) return status;
  if (absl::Status status = CheckTrain(options.train, options.config.layers()); !status.ok()) {
    return status;
  }
  if (std::max(options.symbols, options.config.vocabulary()) < 1 || options.max_micro_batch < 1) {
    return absl::InvalidArgumentError("a model needs at least 1 symbol and 1 sample");
  }
  if (options.config.family() == ModelConfig::ENCODER &&
      std::max(options.classes, options.config.classes()) < 1) {
    return absl::InvalidArgumentError(
        "a model of family ENCODER needs at least 1 class: label the data, or set model.classes");
  }
  if (options.train.precision() == TrainConfig::BF16) {
    ASSIGN_OR_RETURN(auto backend, device.NewBf16Backend());
    return TransformerModel<kernels::Bf16>::Create(options, std::move(backend));
  }
  ASSIGN_OR_RETURN(auto backend, device.NewFp32Backend());
  return TransformerModel<float>::Create(options, std::move(backend));
}

}  // namespace tug
