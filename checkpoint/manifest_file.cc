// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/file_writer.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "config/job_rules.h"

namespace tug {
namespace {

constexpr uint64_t kMaxManifestBytes = 256 << 20;
constexpr uint32_t kMaxSymbols = 10'000'000;  // limit of model.vocabulary

std::string ChecksumLine(std::string_view text) {
  return absl::StrCat("# xxh3 ", absl::Hex(XXH3_64bits(text.data(), text.size()), absl::kZeroPad16),
                      "\n");
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  RETURN_IF_ERROR(file.Append(text));
  return file.Finish();
}

// A checkpoint may come from an untrusted source. Without these limits a configuration of a huge
// model would use all memory before the missing tensors are detected.
absl::Status CheckConfig(const JobConfig& config) {
  JobConfig complete = config;  // fields that an older manifest does not set get their defaults
  FillDefaults(complete, /*cores=*/1);
  RETURN_IF_ERROR(CheckRanges(complete));
  if (config.data().resolved_symbols() > kMaxSymbols) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.resolved_symbols = ", config.data().resolved_symbols(), " is out of range"));
  }
  return absl::OkStatus();
}

// Keeps the text parser from printing to stderr: the caller reports one line.
class SilentErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestFile &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

absl::Status WriteManifest(const std::string& folder, const Manifest& manifest) {
  const std::string path = folder + "/" + kManifestFile;
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(manifest, &text)) {
    return absl::InternalError(
        absl::StrCat("cannot write ", path, ": it cannot be printed as text"));
  }
  text += ChecksumLine(text);
  const absl::Status written = WriteText(path, text);
  if (!written.ok()) ::unlink(path.c_str());
  return written;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxManifestBytes));
  const size_t line_bytes = ChecksumLine("").size();
  const std::string_view all = text;
  const std::string_view body = all.substr(0, all.size() - std::min(all.size(), line_bytes));
  if (all.substr(body.size()) != ChecksumLine(body)) {
    return absl::DataLossError(
        absl::StrCat(path, " is truncated or damaged: its checksum does not match"));
  }
  Manifest manifest;
  google::protobuf::TextFormat::Parser parser;
  SilentErrors errors;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(std::string(body), &manifest) ||
      manifest.format_version() != kManifestFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was written by a different version of tug; this one reads format ",
                     kManifestFormatVersion));
  }
  if (const absl::Status checked = CheckConfig(manifest.config()); !checked.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has an invalid job configuration: ", checked.message()));
  }
  std::set<std::string> names;
  for (const ManifestFile& file : manifest.files()) {
    if (!IsPlainFileName(file.name()) || !names.insert(file.name()).second) {
      return absl::DataLossError(absl::StrCat(path, " lists the file \"",
                                              absl::CEscape(file.name()),
                                              "\" twice or outside its folder"));
    }
  }
  return manifest;
}

}  // namespace tug
