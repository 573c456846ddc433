// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SOURCE_TEXT_READER_H_
#define TUG_DATA_SOURCE_TEXT_READER_H_

// Reads the text of one file, whatever its storage: plain, gzip (RFC 1952), Zstandard (RFC 8878),
// JSON lines. Files that are not text are refused, with the command that converts them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tug {

class DataConfig;

// How a file becomes text: kAuto by its name and first bytes, kBytes as it is.
enum class TextFormat { kAuto, kBytes };

// How files become text.
struct TextRules {
  TextFormat format = TextFormat::kAuto;
  // Appended to each document of JSON lines.
  std::string document_end = "\n\n";
};

// document_end is "<|endoftext|>" for GPT2_BPE, otherwise a blank line.
TextRules TextRulesOf(const DataConfig& config);

// Whether a file is read as JSON lines, by the rules and its name.
bool HoldsDocuments(const std::string& path, const TextRules& rules);

// Whether a name has the ending of a compressed file.
bool IsCompressedName(std::string_view name);

// Not thread-safe.
class TextReader {
 public:
  virtual ~TextReader() = default;

  // Fills `out`, with fewer bytes only at the end of the text, and returns their number. Errors,
  // naming the file: those of the file system; INVALID_ARGUMENT for text that is not as expected
  // (a NUL byte, a line without a document); DATA_LOSS for damaged compressed data.
  virtual absl::StatusOr<size_t> Read(std::span<char> out) = 0;

  // Offset of the first byte in the decompressed file: 3 after a byte order mark, which is skipped.
  uint64_t start_bytes() const { return start_bytes_; }

 protected:
  uint64_t start_bytes_ = 0;
};

// Opens a file and checks its first bytes. AUTO: JSON lines if the name ends with .jsonl or
// .ndjson, also before .gz or .zst; compression by the first bytes. Errors: those of Read;
// INVALID_ARGUMENT, naming the file and the remedy, for binary formats (Parquet, images, archives),
// UTF-16, CSV, JSON documents, and JSON lines under another name.
absl::StatusOr<std::unique_ptr<TextReader>> OpenText(const std::string& path,
                                                     const TextRules& rules);

}  // namespace tug

#endif  // TUG_DATA_SOURCE_TEXT_READER_H_
