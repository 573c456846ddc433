// SPDX-License-Identifier: Apache-2.0
#include "data/source/text_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "data/source/compressed_reader.h"
#include "data/source/json_documents.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using namespace std::string_view_literals;

// File formats that are not text, by their first bytes, and the command that gives text.
struct BinaryFormat {
  std::string_view front;
  size_t offset;
  const char* name;
  const char* remedy;
};
constexpr char kNoText[] = "move it out of data.path";
constexpr char kUnpack[] = "unpack it and set data.path to the folder of its texts";
constexpr BinaryFormat kBinaryFormats[] = {
    {"PAR1", 0, "a Parquet file",
     "convert it to JSON lines: python3 -c 'import pandas, sys; "
     "pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", lines=True)' "
     "FILE FILE.jsonl"},
    {"ARROW1", 0, "an Arrow file",
     "convert it to JSON lines: python3 -c 'import pandas, sys; "
     "pandas.read_feather(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", lines=True)' "
     "FILE FILE.jsonl"},
    {"\xFD"
     "7zXZ",
     0, "an xz file", "decompress it with `xz -dk FILE`"},
    {"BZh", 0, "a bzip2 file", "decompress it with `bunzip2 -k FILE`"},
    {"PK\x03\x04", 0, "a zip archive (also docx, xlsx, npz)", kUnpack},
    {"7z\xBC\xAF\x27\x1C", 0, "a 7z archive", kUnpack},
    {"ustar", 257, "a tar archive", kUnpack},
    {"%PDF-", 0, "a PDF document", "extract its text with `pdftotext FILE`"},
    {"\x89PNG", 0, "a PNG image", kNoText},
    {"\xFF\xD8\xFF", 0, "a JPEG image", kNoText},
    {"GIF8", 0, "a GIF image", kNoText},
    {"\x7F"
     "ELF",
     0, "a program (ELF)", kNoText},
    {"SQLite format 3\0"sv, 0, "an SQLite database", "export its text as JSON lines"},
    {"\x93NUMPY", 0, "a NumPy array", kNoText},
    {"\xD0\xCF\x11\xE0", 0, "a Microsoft Office file", "save its text as UTF-8"},
};

// Without regard to the case of ASCII letters.
bool EndsWith(std::string_view name, std::string_view ending) {
  return absl::EndsWithIgnoreCase({name.data(), name.size()}, {ending.data(), ending.size()});
}

constexpr char kReadAnyway[] = ", or rename it to FILE.txt to train on the ";

absl::Status CheckIsText(std::string_view front, const std::string& path) {
  for (const BinaryFormat& format : kBinaryFormats) {
    if (front.size() < format.offset) continue;
    if (!front.substr(format.offset).starts_with(format.front)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is ", format.name, ", not text: ", format.remedy));
  }
  return absl::OkStatus();
}

// Refuses formats that would train on quotes, commas and braces instead of text.
absl::Status CheckIsPlain(std::string_view front, std::string_view name, const std::string& path) {
  if (EndsWith(name, ".csv")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is a CSV table: convert it to JSON lines with a field \"text\" (FILE.jsonl)",
        kReadAnyway, "table as it is"));
  }
  if (LooksLikeJsonLines(front)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " contains JSON lines: rename it to FILE.jsonl to train on their field \"text\""));
  }
  if (EndsWith(name, ".json")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is a JSON document: convert it to JSON lines (`jq -c '.[]' FILE.json >FILE.jsonl`)",
        kReadAnyway, "JSON as it is"));
  }
  return absl::OkStatus();
}

// The bytes of `from`, the first of which were read already as `front`. Text has no NUL.
class CheckedReader final : public TextReader {
 public:
  CheckedReader(std::string path, std::string front, size_t start, std::unique_ptr<TextReader> from)
      : path_(std::move(path)),
        front_(std::move(front)),
        from_(std::move(from)),
        at_(start),
        offset_bytes_(start) {
    start_bytes_ = start;
  }

  absl::StatusOr<size_t> Read(std::span<char> out) override {
    const size_t held = std::min(out.size(), front_.size() - at_);
    std::copy_n(front_.begin() + static_cast<std::ptrdiff_t>(at_), held, out.begin());
    at_ += held;
    ASSIGN_OR_RETURN(const size_t got, from_->Read(out.subspan(held)));
    const std::string_view read(out.data(), held + got);
    const size_t nul = read.find('\0');
    if (nul != read.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " has a NUL byte at offset ", offset_bytes_ + nul,
                       ", so it is not text: move it out of data.path, or remove the byte"));
    }
    offset_bytes_ += read.size();
    return read.size();
  }

 private:
  const std::string path_;
  const std::string front_;
  const std::unique_ptr<TextReader> from_;
  size_t at_;  // in front_
  uint64_t offset_bytes_;
};

// The first bytes of a file.
absl::StatusOr<std::string> FrontOf(TextReader& reader) {
  std::string front(kTextFrontBytes, '\0');
  ASSIGN_OR_RETURN(const size_t got, reader.Read(front));
  front.resize(got);
  return front;
}

// Name without the ending of a compressed file.
std::string_view Uncompressed(std::string_view name) {
  for (const std::string_view ending : {".gz", ".zst", ".zstd"}) {
    if (EndsWith(name, ending)) {
      return name.substr(0, name.size() - ending.size());
    }
  }
  return name;
}

}  // namespace

TextRules TextRulesOf(const DataConfig& config) {
  TextRules rules;
  if (config.tokenizer() == DataConfig::GPT2_BPE) rules.document_end = "<|endoftext|>";
  return rules;
}

bool IsCompressedName(std::string_view name) { return Uncompressed(name) != name; }

bool HoldsDocuments(const std::string& path, const TextRules& rules) {
  if (rules.format == TextFormat::kBytes) return false;
  const std::string_view name = Uncompressed(path);
  return EndsWith(name, ".jsonl") || EndsWith(name, ".ndjson");
}

absl::StatusOr<std::unique_ptr<TextReader>> OpenText(const std::string& path,
                                                     const TextRules& rules) {
  if (rules.format == TextFormat::kBytes) return OpenBytes(path, Compression::kNone);
  ASSIGN_OR_RETURN(const auto raw, OpenBytes(path, Compression::kNone));
  ASSIGN_OR_RETURN(const std::string stored, FrontOf(*raw));
  ASSIGN_OR_RETURN(auto bytes, OpenBytes(path, CompressionOf(stored)));
  ASSIGN_OR_RETURN(std::string front, FrontOf(*bytes));
  RETURN_IF_ERROR(CheckIsText(front, path));
  ASSIGN_OR_RETURN(const size_t start, TextStart(front, path));
  const bool documents = HoldsDocuments(path, rules);
  if (!documents) {
    RETURN_IF_ERROR(CheckIsPlain(std::string_view(front).substr(start), Uncompressed(path), path));
  }
  std::unique_ptr<TextReader> text =
      std::make_unique<CheckedReader>(path, std::move(front), start, std::move(bytes));
  if (!documents) return text;
  return std::make_unique<JsonDocuments>(path, std::move(text), rules.document_end);
}

}  // namespace tug
