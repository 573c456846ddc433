#include "huggingface/weights_source.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "huggingface/gpt2_config.h"
#include "proto/field_path.h"

namespace tug {
namespace {

// What must be equal for two models to have the same weights.
constexpr const char* kFields[] = {
    "model.family", "model.norm",      "model.activation", "model.layers",
    "model.width",  "model.heads",     "model.mlp_width",  "model.context",
    "model.bias",   "model.tied_head", "model.vocabulary",
};

// " --set model.layers=12 --set ..." for what `there` sets and `here` has otherwise.
absl::StatusOr<std::string> SetFlags(const JobConfig& there, const JobConfig& here) {
  std::string flags;
  for (const std::string path : kFields) {
    ASSIGN_OR_RETURN(const FieldRef theirs, FindField(there, path));
    ASSIGN_OR_RETURN(const FieldRef ours, FindField(here, path));
    if (theirs.Text() != ours.Text()) absl::StrAppend(&flags, " --set ", path, "=", theirs.Text());
  }
  return flags;
}

// A job whose model.vocabulary says how many symbols the model has.
JobConfig WithSymbols(JobConfig job) {
  ModelConfig& model = *job.mutable_model();
  model.set_vocabulary(std::max(model.vocabulary(), job.data().resolved_symbols()));
  return job;
}

}  // namespace

absl::StatusOr<WeightsSource> WeightsSource::Open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(path, "/", kHfConfigFile), error)) {
    ASSIGN_OR_RETURN(Gpt2Weights weights, Gpt2Weights::Open(path));
    return WeightsSource(path, std::move(weights));
  }
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(path);
  if (absl::IsNotFound(found.status())) {
    return absl::NotFoundError(
        absl::StrCat("train.init_from ", path,
                     " is neither a folder of Hugging Face's GPT-2 (with config.json and "
                     "model.safetensors) nor a run or checkpoint, on this host: check the path"));
  }
  RETURN_IF_ERROR(found.status());
  ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(found->folder));
  return WeightsSource(path, std::move(reader));
}

absl::Status WeightsSource::Check(const JobConfig& job, const BlockTable& blocks) const {
  const auto* gpt2 = std::get_if<Gpt2Weights>(&source_);
  const JobConfig here = WithSymbols(job);
  JobConfig there = here;
  if (gpt2 != nullptr) {
    const uint32_t context = here.model().context();
    *there.mutable_model() = gpt2->config();
    // Positions behind the job's context are left out.
    if (context < gpt2->config().context()) there.mutable_model()->set_context(context);
  } else {
    there = WithSymbols(std::get<CheckpointReader>(source_).manifest().config());
  }
  const uint32_t symbols = there.model().vocabulary();
  if (symbols < job.data().resolved_symbols()) {
    return absl::FailedPreconditionError(
        absl::StrCat("train.init_from ", path_, " holds a model of ", symbols,
                     " symbols, but the job's text has ", job.data().resolved_symbols(),
                     ": give --set data.tokenizer and --set data.tokenizer_path "
                     "of the tokenizer the model was trained with"));
  }
  ASSIGN_OR_RETURN(const std::string flags, SetFlags(there, here));
  if (!flags.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "train.init_from ", path_, " holds another model than the job's: give", flags));
  }
  if (gpt2 != nullptr) return gpt2->Check(blocks);
  const Manifest& manifest = std::get<CheckpointReader>(source_).manifest();
  if (google::protobuf::util::MessageDifferencer::Equals(manifest.blocks(), blocks)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the parameters in ", path_,
                   " are laid out otherwise than this job's: use the version of tug that wrote "
                   "them, and data with as many classes"));
}

absl::Status WeightsSource::ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end,
                                      std::span<float> out) const {
  if (const auto* gpt2 = std::get_if<Gpt2Weights>(&source_)) {
    gpt2->ReadRange(block, begin, end, out);
    return absl::OkStatus();
  }
  return std::get<CheckpointReader>(source_).ReadRange(block.name(), begin, end, 'w', out);
}

}  // namespace tug
