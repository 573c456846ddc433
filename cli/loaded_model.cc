// SPDX-License-Identifier: Apache-2.0
#include "cli/loaded_model.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/files/shell_word.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "google/protobuf/util/message_differencer.h"
#include "huggingface/gpt2_config.h"
#include "model/job_model.h"
#include "model/layout.h"
#include "model/transformer/create_model.h"
#include "model/transformer/finite_weights.h"

namespace tug {
namespace {

// Refuses a folder that a job can start from, but that is no run.
absl::Status CheckIsRun(const std::string& from) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(from) / kHfWeightsFile, error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      from, " is a Hugging Face folder, not a run: train from it with tug train JOB --init-from ",
      ShellWord(from), ", then name that run"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Load(const std::string& from, int threads,
                                                               int max_micro_batch) {
  RETURN_IF_ERROR(CheckIsRun(from));
  ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(from));
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(found.folder));
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(found.folder, reader.manifest(), threads));
  const JobConfig& config = loaded->config();
  if (config.model().external()) {
    return absl::FailedPreconditionError(
        absl::StrCat(found.folder,
                     " was written by an external model (model.external), which tug cannot run: "
                     "read its safetensors files directly"));
  }
  if (config.compute() == JobConfig::REPLAY) {
    return absl::FailedPreconditionError(
        absl::StrCat(found.folder,
                     " was written by a replay (compute: REPLAY), which trains no model: pass a "
                     "checkpoint of a training run"));
  }
  ModelOptions options = ModelOptionsOf(config);
  options.max_micro_batch = max_micro_batch;
  options.inference = true;
  ASSIGN_OR_RETURN(loaded->model_, CreateModel(options, loaded->pool_));
  const BlockTable& blocks = loaded->model_->blocks();
  if (!google::protobuf::util::MessageDifferencer::Equals(blocks, reader.manifest().blocks())) {
    return absl::FailedPreconditionError(
        absl::StrCat("a version of tug with another parameter layout wrote ", found.folder,
                     ": use that version"));
  }
  for (int i = 0; i < blocks.blocks_size(); ++i) {
    const BlockSpec& block = blocks.blocks(i);
    const uint64_t elements = ElementCount(block);
    AlignedBuffer& weights = loaded->weights_.emplace_back(elements * sizeof(float));
    RETURN_IF_ERROR(reader.ReadRange(block.name(), 0, elements, 'w', weights.floats()));
    RETURN_IF_ERROR(CheckFinite(found.folder, block, 0, weights.floats()));
    loaded->Bind(i, weights);
  }
  return loaded;
}

// Binds the weights as the job's workers did: pulled as bf16 means rounded, vectors and embeddings
// included.
void LoadedModel::Bind(int block, const AlignedBuffer& weights) {
  const bool rounded = config().train().precision() == TrainConfig::BF16 &&
                       config().comm().pull_format() == CommConfig::BF16;
  if (!rounded) return model_->BindWeights(block, {.fp32 = weights.floats()});
  std::vector<kernels::Bf16>& bf16 = rounded_.emplace_back(weights.floats().size());
  kernels::Bf16FromFloat(weights.floats().data(), bf16.data(), static_cast<int64_t>(bf16.size()));
  model_->BindWeights(block, {.bf16 = bf16});
}

std::vector<std::span<const float>> LoadedModel::weights() const {
  std::vector<std::span<const float>> weights;
  for (const AlignedBuffer& block : weights_) weights.push_back(block.floats());
  return weights;
}

void AddFromOption(CLI::App& command, std::string& from) {
  command
      .add_option("--from", from,
                  "Run folder (its newest checkpoint), RUN/best, or folder of a checkpoint")
      ->type_name("PATH")
      ->required();
}

}  // namespace tug
