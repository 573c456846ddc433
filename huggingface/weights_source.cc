// SPDX-License-Identifier: Apache-2.0
#include "huggingface/weights_source.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "config/field_path.h"
#include "config/job_config.h"
#include "data/sampler.h"
#include "data/text/gpt2_files.h"
#include "google/protobuf/util/message_differencer.h"
#include "huggingface/gpt2_config.h"
#include "model/layout.h"
#include "model/transformer/finite_weights.h"

namespace tug {
namespace {

constexpr uint64_t kCheckElements = uint64_t{1} << 20;
constexpr size_t kMaxNamed = 5;

// Fields that determine the shapes and the use of a model's weights.
constexpr const char* kFields[] = {
    "model.family", "model.norm",      "model.activation", "model.layers",
    "model.width",  "model.heads",     "model.mlp_width",  "model.context",
    "model.bias",   "model.tied_head", "model.vocabulary", "model.classes",
};

constexpr const char* kTokenizerFields[] = {
    "data.tokenizer",
    "data.tokenizer_path",
    "data.pieces",
};

// Adds "path=value", the value of `there`, if `given` does not set the field and `here`, the same
// with defaults, has another one.
void AddOverride(const std::string& path, const JobConfig& there, const JobConfig& given,
                 const JobConfig& here, std::vector<std::string>& overrides) {
  const auto theirs = FindField(there, path), set = FindField(given, path),
             ours = FindField(here, path);
  TUG_CHECK(theirs.ok() && set.ok() && ours.ok()) << path;
  if (set->IsPresent() || theirs->Text() == ours->Text()) return;
  const google::protobuf::FieldDescriptor* field = theirs->field;
  const bool is_string = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
  overrides.push_back(
      absl::StrCat(path, "=",
                   is_string ? theirs->message->GetReflection()->GetString(*theirs->message, field)
                             : theirs->Text()));
}

// Flags such as " --set model.layers=12" that change `here` to `there` in every field that differs.
absl::StatusOr<std::string> SetFlags(const JobConfig& there, const JobConfig& here) {
  std::string flags;
  for (const std::string path : kFields) {
    ASSIGN_OR_RETURN(const FieldRef theirs, FindField(there, path));
    ASSIGN_OR_RETURN(const FieldRef ours, FindField(here, path));
    if (theirs.Text() != ours.Text()) absl::StrAppend(&flags, " --set ", path, "=", theirs.Text());
  }
  return flags;
}

// Copies a job and sets model.vocabulary and model.classes to the actual sizes.
JobConfig Sized(JobConfig job) {
  ModelConfig& model = *job.mutable_model();
  model.set_vocabulary(std::max(model.vocabulary(), job.data().resolved_symbols()));
  if (model.family() == ModelConfig::ENCODER) {
    model.set_classes(std::max(model.classes(), DataClasses(job.data())));
  }
  return job;
}

bool HasText(const DataConfig& data) { return data.random().samples() == 0; }

// Remedy for data with more symbols than the model of `path` has.
std::string FewerSymbols(const std::string& path, bool is_gpt2, const DataConfig& data,
                         uint32_t symbols) {
  if (!HasText(data)) return absl::StrCat("pass --set data.random.symbols=", symbols);
  if (!is_gpt2) return absl::StrCat("choose a data.tokenizer with at most ", symbols, " symbols");
  std::error_code error;
  const bool has_files = std::filesystem::exists(Gpt2FilesIn(path)[0], error);
  return absl::StrCat("pass --set data.tokenizer=GPT2_BPE --set data.tokenizer_path=",
                      has_files ? path : "DIR, a folder with its tokenizer's files");
}

// Checks that two text classifiers have the same labels in the same order.
absl::Status CheckLabels(const std::string& path, const JobConfig& there, const JobConfig& here) {
  if (there.model().family() != ModelConfig::ENCODER ||
      here.model().family() != ModelConfig::ENCODER || !HasText(there.data()) ||
      !HasText(here.data())) {
    return absl::OkStatus();
  }
  const auto label = [](const DataConfig& data, int i) {
    if (i >= data.resolved_labels_size()) return std::string("none");
    return absl::StrCat("\"", absl::Utf8SafeCHexEscape(data.resolved_labels(i)), "\"");
  };
  const int count = there.data().resolved_labels_size();
  for (int i = 0; i < std::max(count, here.data().resolved_labels_size()); ++i) {
    const std::string theirs = label(there.data(), i), ours = label(here.data(), i);
    if (theirs == ours) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("train.init_from ", path, " was trained on other labels: class ", i, " is ",
                     theirs, " there but ", ours, " in the job's text; use a text with the same ",
                     count, " labels, or remove train.init_from"));
  }
  return absl::OkStatus();
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
                     " is not a Hugging Face GPT-2 folder (with config.json and "
                     "model.safetensors), a run or a checkpoint on this host: check the path"));
  }
  RETURN_IF_ERROR(found.status());
  if (found->manifest.config().compute() == JobConfig::REPLAY) {
    return absl::FailedPreconditionError(
        absl::StrCat(found->folder,
                     " was written by a replay (compute: REPLAY), which trains no model: pass a "
                     "checkpoint of a training run"));
  }
  if (found->manifest.config().model().external()) {
    return absl::FailedPreconditionError(
        absl::StrCat("train.init_from ", found->folder,
                     " was written by an external model (model.external), which tug cannot load: "
                     "pass a checkpoint of a model that tug trains"));
  }
  ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(found->folder));
  return WeightsSource(found->folder, std::move(reader));
}

std::vector<std::string> WeightsSource::ShapeOverrides(const JobConfig& given) const {
  const auto* gpt2 = std::get_if<Gpt2Weights>(&source_);
  JobConfig there;
  if (gpt2 != nullptr) {
    *there.mutable_model() = gpt2->config();
    there.mutable_data()->set_tokenizer(DataConfig::BYTE);
    std::error_code error;
    if (std::filesystem::exists(Gpt2FilesIn(path_)[0], error)) {
      there.mutable_data()->set_tokenizer(DataConfig::GPT2_BPE);
      there.mutable_data()->set_tokenizer_path(path_);
    }
  } else {
    there = std::get<CheckpointReader>(source_).manifest().config();
  }
  FillDefaults(there);
  JobConfig here = given;
  FillDefaults(here);
  std::vector<std::string> overrides;
  for (const char* path : kFields) AddOverride(path, there, given, here, overrides);
  const bool adopts_tokenizer = HasText(given.data()) && HasText(there.data()) &&
                                given.data().tokenizer() == DataConfig::TOKENIZER_DEFAULT &&
                                given.data().tokenizer_path().empty();
  if (!adopts_tokenizer) return overrides;
  for (const char* path : kTokenizerFields) AddOverride(path, there, given, here, overrides);
  return overrides;
}

absl::Status WeightsSource::TakeTokenizer(DataConfig& data) const {
  const auto* checkpoint = std::get_if<CheckpointReader>(&source_);
  if (checkpoint == nullptr) return absl::OkStatus();
  const DataConfig& theirs = checkpoint->manifest().config().data();
  if (!HasText(theirs) || !HasText(data)) return absl::OkStatus();
  if (theirs.tokenizer() == data.tokenizer()) {
    data.set_resolved_tokenizer(theirs.resolved_tokenizer());
    data.set_resolved_alphabet(theirs.resolved_alphabet());
    return absl::OkStatus();
  }
  const std::string kind = DataConfig::Tokenizer_Name(theirs.tokenizer());
  std::string flags = absl::StrCat("--set data.tokenizer=", kind);
  if (theirs.tokenizer_path() != data.tokenizer_path()) {
    absl::StrAppend(&flags, " --set data.tokenizer_path=", theirs.tokenizer_path());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "train.init_from ", path_, " was trained with another tokenizer, ", kind, ": pass ", flags));
}

absl::Status WeightsSource::CheckValues(const BlockTable& blocks) const {
  std::vector<float> values;
  for (const BlockSpec& block : blocks.blocks()) {
    const uint64_t elements = ElementCount(block);
    for (uint64_t begin = 0; begin < elements; begin += kCheckElements) {
      const uint64_t end = std::min(elements, begin + kCheckElements);
      values.resize(end - begin);
      RETURN_IF_ERROR(ReadRange(block, begin, end, values));
    }
  }
  return absl::OkStatus();
}

std::string WeightsSource::Notice(const BlockTable& blocks) const {
  const std::string loaded = absl::StrCat("initial weights from ", path_);
  const auto* gpt2 = std::get_if<Gpt2Weights>(&source_);
  if (gpt2 == nullptr) return loaded;
  std::vector<std::string> unused = gpt2->Unused(blocks);
  if (unused.empty()) return loaded;
  const size_t count = unused.size();
  if (count > kMaxNamed) unused.resize(kMaxNamed);
  return absl::StrCat(loaded, ", of which the model does not use ", absl::StrJoin(unused, ", "),
                      count > kMaxNamed ? absl::StrCat(" and ", count - kMaxNamed, " more") : "");
}

absl::Status WeightsSource::Check(const JobConfig& job, const BlockTable& blocks) const {
  const auto* gpt2 = std::get_if<Gpt2Weights>(&source_);
  const JobConfig here = Sized(job);
  JobConfig there = here;
  if (gpt2 != nullptr) {
    const uint32_t context = here.model().context();
    *there.mutable_model() = gpt2->config();
    // The model of a shorter context uses only the first positions.
    if (context < gpt2->config().context()) there.mutable_model()->set_context(context);
  } else {
    there = Sized(std::get<CheckpointReader>(source_).manifest().config());
    RETURN_IF_ERROR(CheckLabels(path_, there, here));
  }
  const uint32_t symbols = there.model().vocabulary();
  if (symbols < job.data().resolved_symbols()) {
    return absl::FailedPreconditionError(
        absl::StrCat("train.init_from ", path_, " has a model with ", symbols,
                     " symbols, but the job's data has ", job.data().resolved_symbols(), ": ",
                     FewerSymbols(path_, gpt2 != nullptr, job.data(), symbols)));
  }
  ASSIGN_OR_RETURN(const std::string flags, SetFlags(there, here));
  if (!flags.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "train.init_from ", path_, " has a different model from the job's",
        gpt2 != nullptr && gpt2->has_unexpected_head()
            ? " (its lm_head.weight differs from its wte.weight, so the head is not tied)"
            : "",
        ": pass", flags));
  }
  if (gpt2 != nullptr) return gpt2->Check(blocks);
  const Manifest& manifest = std::get<CheckpointReader>(source_).manifest();
  if (google::protobuf::util::MessageDifferencer::Equals(manifest.blocks(), blocks)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the parameter layout of ", path_,
                   " differs from this job's: use the version of tug that wrote it"));
}

absl::Status WeightsSource::ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end,
                                      std::span<float> out) const {
  if (const auto* gpt2 = std::get_if<Gpt2Weights>(&source_)) {
    gpt2->ReadRange(block, begin, end, out);
  } else {
    const auto& checkpoint = std::get<CheckpointReader>(source_);
    RETURN_IF_ERROR(checkpoint.ReadRange(block.name(), begin, end, 'w', out));
  }
  return CheckFinite(path_, block, begin, out);
}

}  // namespace tug
