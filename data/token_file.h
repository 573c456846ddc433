// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TOKEN_FILE_H_
#define TUG_DATA_TOKEN_FILE_H_

// Tokens in a file that is mapped into memory, so data may exceed memory. Little-endian:
//
//   header (TokenFileHeader, 112 bytes) | tokenizer data (data.resolved_alphabet or
//   data.resolved_tokenizer; else empty) | labels, each followed by a newline
//   | zeros up to a multiple of 64 | tokens | zeros up to a multiple of 64 | lines (TokenLine)
//
// A token takes 1, 2 or 4 bytes, the smallest size that holds the number of symbols. Running text
// has no line table and no second padding. For lines, only the texts, sources and targets are
// tokenized, without tabs, labels and newlines. The file is a cache: it is rebuilt whenever text or
// settings have changed or it is damaged.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/mapped_file.h"
#include "proto/job.pb.h"

namespace tug {

// Structure of the text.
enum class TextForm : uint32_t {
  kRunning = 0,        // one text
  kLabelledLines = 1,  // lines "label<TAB>text"
  kLinePairs = 2,      // lines "source<TAB>target"
};

// Extra symbols for lines, numbered after the tokenizer's; they never occur in text.
inline constexpr uint32_t kLineSymbols = 2;
constexpr int32_t BeginSymbol(uint32_t tokenizer_symbols) {
  return static_cast<int32_t>(tokenizer_symbols);
}
constexpr int32_t EndSymbol(uint32_t tokenizer_symbols) {
  return static_cast<int32_t>(tokenizer_symbols) + 1;
}

// Location of a line's tokens, on disk and in memory.
struct TokenLine {
  uint64_t begin = 0;   // first token of the text or source
  uint32_t source = 0;  // number of tokens of the text or source, at least 1
  // kLabelledLines: number of the label. kLinePairs: number of tokens of the target, at least 1;
  // they follow the source's.
  uint32_t second = 0;
};
static_assert(sizeof(TokenLine) == 16);

struct TokenFileInfo {
  uint32_t symbols = 0;  // of the tokenizer
  std::string known;     // tokenizer data: resolved_alphabet, resolved_tokenizer or empty
  TextForm form = TextForm::kRunning;
  std::vector<std::string> labels;  // kLabelledLines: sorted by bytes
  uint64_t lines = 0;
  uint64_t tokens = 0;
  uint64_t text_bytes = 0;   // that were encoded: decompressed, without labels, tabs and line ends
  uint64_t fingerprint = 0;  // XXH3 of the file with its header zeroed
  bool reused = false;       // the file existed and was kept

  // Sets the resolved_* fields of a configuration. resolved_symbols is the model's number: the
  // tokenizer's symbols, plus kLineSymbols if the text is lines.
  void Resolve(DataConfig& config) const;
};

// Makes `out_path` from the text config.path(), or keeps it if it was made from the same files
// (path, names, sizes, modification times) with the same tokenizer and its checksum matches.
// Alphabet, tokenizer and labels come from a resolved configuration, else from the text or the
// tokenizer's files.
//
// `wanted`: required fingerprint of the tokens; 0: any. If the tokens have another one, because the
// text has changed, `out_path` is unchanged and the result has that fingerprint. Memory is bounded
// for any text size. The text is read once to encode it, and before that once to train the
// tokenizer and once to collect labels, where these are not resolved. The file is written under
// another name and renamed, so a kill leaves no partial file; concurrent processes are serialized
// by a lock on `out_path`.lock. Thread-safe.
//
// Errors, naming file and remedy: text missing, unreadable, empty or not text (OpenText); a line
// that is not of `form` or has an unknown label; the tokenizer's files missing or invalid; disk
// full.
absl::StatusOr<TokenFileInfo> PrepareTokenFile(const DataConfig& config,
                                               const std::string& out_path,
                                               TextForm form = TextForm::kRunning,
                                               uint64_t wanted = 0);

// Immutable, so thread-safe. Movable.
class TokenFile {
 public:
  // Checks header and size, not the contents. Errors: NOT_FOUND; DATA_LOSS for a file that is
  // damaged or not a token file.
  static absl::StatusOr<TokenFile> Open(const std::string& path);

  // Compares the whole file with its checksum. Errors: DATA_LOSS.
  absl::Status VerifyContents() const;

  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return info_.tokens; }
  const TokenFileInfo& info() const { return info_; }
  // Keys of the file's inputs: text, its form and the kind of tokenizer; the tokenizer's files or
  // training settings.
  uint64_t source_key() const { return source_key_; }
  uint64_t tokenizer_key() const { return tokenizer_key_; }

  // Tokens first .. first + out.size() - 1. REQUIRES: they are within size().
  void Read(uint64_t first, std::span<int32_t> out) const;

  // REQUIRES: index < info().lines.
  TokenLine Line(uint64_t index) const;

 private:
  TokenFile() = default;

  MappedFile file_;
  TokenFileInfo info_;
  uint64_t source_key_ = 0;
  uint64_t tokenizer_key_ = 0;
  uint32_t token_bytes_ = 0;
  const std::byte* tokens_ = nullptr;  // in file_
  const std::byte* lines_ = nullptr;   // in file_
};

// Opens the tokens that the coordinator resolved in `config`. If `path` already holds them, the
// text is not read, even if it has changed; else `path` is made from the text. Thread-safe. Errors:
// those of PrepareTokenFile; FAILED_PRECONDITION: the text has other tokens, and `path` is
// unchanged.
absl::StatusOr<TokenFile> OpenResolvedTokens(const DataConfig& config, const std::string& path,
                                             TextForm form);

// Header of the file, at offset 0.
struct TokenFileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t token_bytes;  // 1, 2 or 4
  uint32_t symbols;
  uint32_t form;  // TextForm
  uint64_t tokens;
  uint64_t text_bytes;
  uint64_t known_bytes;
  uint64_t labels_bytes;
  uint64_t tokens_offset_bytes;
  uint64_t lines;
  uint64_t lines_offset_bytes;
  uint64_t source_key;
  uint64_t tokenizer_key;  // of the files or settings that the tokenizer data comes from
  uint64_t contents_xxh3;  // of the file with this header zeroed
  uint64_t header_xxh3;    // of the fields above
};
static_assert(sizeof(TokenFileHeader) == 112);

inline constexpr uint64_t kTokenFileMagic = 0x4E454B4F54475554;  // "TUGTOKEN"
inline constexpr uint32_t kTokenFileVersion = 3;

}  // namespace tug

#endif  // TUG_DATA_TOKEN_FILE_H_
