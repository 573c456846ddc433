// SPDX-License-Identifier: Apache-2.0
#include "huggingface/gpt2_export.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "base/status_macros.h"
#include "checkpoint/safetensors.h"
#include "data/text/gpt2_files.h"
#include "huggingface/gpt2_config.h"
#include "huggingface/gpt2_weights.h"
#include "model/layout.h"
#include "model/transformer/finite_weights.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCopyElements = uint64_t{1} << 20;
constexpr char kSentencePieceFile[] = "tokenizer.model";

absl::Status CheckFree(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) ||
      (fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " exists and is not an empty folder: pass another one, or remove it"));
}

absl::Status WriteText(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  RETURN_IF_ERROR(file.Append(text));
  return file.Finish();
}

absl::Status WriteWeights(const CheckpointReader& checkpoint, const std::string& path,
                          ExportedGpt2& result) {
  std::vector<TensorDecl> tensors;
  for (const BlockSpec& block : checkpoint.manifest().blocks().blocks()) {
    for (const TensorSpec& tensor : block.tensors()) {
      tensors.push_back({HfName(tensor.name()), {tensor.shape().begin(), tensor.shape().end()}});
    }
  }
  ASSIGN_OR_RETURN(SafetensorsWriter writer,
                   SafetensorsWriter::Create(path, tensors, {{"format", "pt"}}));
  // A block's tensors are contiguous and in order, so blocks are copied unchanged.
  const std::string where =
      absl::StrCat("the checkpoint of step ", checkpoint.manifest().version());
  std::vector<float> values;
  for (const BlockSpec& block : checkpoint.manifest().blocks().blocks()) {
    const uint64_t elements = ElementCount(block);
    for (uint64_t begin = 0; begin < elements; begin += kCopyElements) {
      const uint64_t end = std::min(elements, begin + kCopyElements);
      values.resize(end - begin);
      RETURN_IF_ERROR(checkpoint.ReadRange(block.name(), begin, end, 'w', values));
      RETURN_IF_ERROR(CheckFinite(where, block, begin, values));
      RETURN_IF_ERROR(writer.Append(values));
    }
  }
  RETURN_IF_ERROR(writer.Finish());
  result.tensors = tensors.size();
  result.size_bytes = writer.size_bytes();
  return absl::OkStatus();
}

// Tables of the tokenizer, if GPT-2's format can represent it.
std::optional<BytePairTables> TablesOf(const DataConfig& data) {
  if (data.tokenizer() == DataConfig::BYTE) return ByteTables();
  BytePairTables tables;
  if (data.tokenizer() != DataConfig::GPT2_BPE ||
      !tables.ParseFromString(data.resolved_tokenizer())) {
    return std::nullopt;
  }
  return tables;
}

// tokenizer_config.json for transformers: without a class, its AutoTokenizer would use GPT-2's
// tokenizer for a model of this type. LlamaTokenizer merges pairs; TokenizersBackend follows the
// model file, and transformers before version 5 refuses it.
std::string SentencePieceSettingsJson(const std::string& model_bytes, uint32_t context) {
  SentencePieceModel model;
  const bool merges = model.ParseFromString(model_bytes) &&
                      model.trainer_spec().model_type() == SentencePieceModel::Trainer::BPE;
  nlohmann::ordered_json json;
  json["tokenizer_class"] = merges ? "LlamaTokenizer" : "TokenizersBackend";
  json["model_max_length"] = context;
  for (const char* field : {"add_bos_token", "add_eos_token", "add_prefix_space", "legacy"}) {
    json[field] = false;
  }
  return json.dump(2) + "\n";
}

// Returns the text of ExportedGpt2.tokenizer.
absl::StatusOr<std::string> WriteTokenizer(const JobConfig& job, const std::string& folder) {
  const DataConfig& data = job.data();
  if (const auto tables = TablesOf(data); tables.has_value()) {
    RETURN_IF_ERROR(WriteText(absl::StrCat(folder, "/", kGpt2VocabFile), Gpt2VocabJson(*tables)));
    RETURN_IF_ERROR(WriteText(absl::StrCat(folder, "/", kGpt2MergesFile), Gpt2MergesText(*tables)));
    RETURN_IF_ERROR(WriteText(absl::StrCat(folder, "/", kGpt2SettingsFile),
                              Gpt2SettingsJson(*tables, job.model().context())));
    if (tables->added().empty()) return absl::StrCat(kGpt2VocabFile, ", ", kGpt2MergesFile);
    RETURN_IF_ERROR(
        WriteText(absl::StrCat(folder, "/", kGpt2AddedTokensFile), Gpt2AddedTokensJson(*tables)));
    return absl::StrCat(kGpt2VocabFile, ", ", kGpt2MergesFile, ", ", kGpt2AddedTokensFile);
  }
  if (data.tokenizer() == DataConfig::SENTENCEPIECE && !data.resolved_tokenizer().empty()) {
    RETURN_IF_ERROR(
        WriteText(absl::StrCat(folder, "/", kSentencePieceFile), data.resolved_tokenizer()));
    RETURN_IF_ERROR(
        WriteText(absl::StrCat(folder, "/", kGpt2SettingsFile),
                  SentencePieceSettingsJson(data.resolved_tokenizer(), job.model().context())));
    return absl::StrCat(kSentencePieceFile, ", for the SentencePiece library");
  }
  return absl::StrCat("no file: GPT-2's format has none for data.tokenizer ",
                      DataConfig::Tokenizer_Name(data.tokenizer()));
}

absl::StatusOr<ExportedGpt2> WriteFolder(const CheckpointReader& checkpoint,
                                         const std::string& folder) {
  ExportedGpt2 result;
  const JobConfig& job = checkpoint.manifest().config();
  const auto tables = TablesOf(job.data());
  const int64_t symbols = std::max(job.data().resolved_symbols(), job.model().vocabulary());
  RETURN_IF_ERROR(
      WriteText(absl::StrCat(folder, "/", kHfConfigFile),
                HfConfigJson(job.model(), symbols,
                             tables.has_value() ? Gpt2EndOfTextToken(*tables) : std::nullopt)));
  RETURN_IF_ERROR(WriteWeights(checkpoint, absl::StrCat(folder, "/", kHfWeightsFile), result));
  ASSIGN_OR_RETURN(result.tokenizer, WriteTokenizer(job, folder));
  RETURN_IF_ERROR(SyncFolder(folder));
  return result;
}

// Writes a folder inside `partial`, which only its owner can access, and moves it to `name`, so
// that it has the permissions of any new folder.
absl::StatusOr<ExportedGpt2> WriteAndMove(const CheckpointReader& checkpoint,
                                          const std::string& partial, const std::string& name) {
  const std::string inner = absl::StrCat(partial, "/", fs::path(name).filename().string());
  std::error_code error;
  fs::create_directory(inner, error);
  if (error) return FileError(error.value(), "create the folder", inner);
  ASSIGN_OR_RETURN(ExportedGpt2 result, WriteFolder(checkpoint, inner));
  if (std::rename(inner.c_str(), name.c_str()) != 0) return FileError(errno, "rename to", name);
  return result;
}

}  // namespace

absl::StatusOr<ExportedGpt2> ExportGpt2(const CheckpointReader& checkpoint,
                                        const std::string& folder) {
  RETURN_IF_ERROR(CheckHfCanHold(checkpoint.manifest().config().model()));
  const std::string name = AbsolutePath(folder);
  RETURN_IF_ERROR(CheckFree(name));
  const std::string parent = fs::path(name).parent_path().string();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return FileError(error.value(), "create the folder", parent);
  // A unique name, so that no existing folder is deleted.
  std::string partial = name + ".partial-XXXXXX";
  if (::mkdtemp(partial.data()) == nullptr) return FileError(errno, "create the folder", partial);
  auto result = WriteAndMove(checkpoint, partial, name);
  fs::remove_all(partial, error);
  if (result.ok()) RETURN_IF_ERROR(SyncFolder(parent));
  return result;
}

}  // namespace tug
