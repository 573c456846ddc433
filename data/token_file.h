#ifndef TUG_DATA_TOKEN_FILE_H_
#define TUG_DATA_TOKEN_FILE_H_

// Tokens on disk, mapped into memory, so that data may exceed it. Little-endian:
//
//   header (TokenFileHeader, 104 bytes) | what the tokenizer has to know (data.resolved_alphabet
//   or data.resolved_tokenizer; else nothing) | labels, each with a new line behind it
//   | zeros up to a multiple of 64 | tokens | zeros up to a multiple of 64 | lines (TokenLine)
//
// A token takes 1, 2 or 4 bytes, the least that holds the number of symbols. Running text has no
// lines; of lines only their texts are in the tokens, without tabs, labels and new lines. The file
// is a cache of a text: it is made again whenever text or settings have changed or it is damaged.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "proto/job.pb.h"

namespace tug {

// What the text is made of.
enum class TextForm : uint32_t {
  kRunning = 0,        // one text
  kLabelledLines = 1,  // lines "label<TAB>text"
  kLinePairs = 2,      // lines "source<TAB>target"
};

// Symbols that stand in no text, for lines: numbered behind those of the tokenizer.
inline constexpr uint32_t kLineSymbols = 2;
constexpr int32_t BeginSymbol(uint32_t tokenizer_symbols) {
  return static_cast<int32_t>(tokenizer_symbols);
}
constexpr int32_t EndSymbol(uint32_t tokenizer_symbols) {
  return static_cast<int32_t>(tokenizer_symbols) + 1;
}

// A line on disk and in memory: where its tokens are.
struct TokenLine {
  uint64_t begin = 0;   // first token, of the text or source
  uint32_t source = 0;  // tokens of the text or source, at least 1
  // kLabelledLines: the number of the label. kLinePairs: tokens of the target, which follow those
  // of the source; at least 1.
  uint32_t second = 0;
};
static_assert(sizeof(TokenLine) == 16);

struct TokenFileInfo {
  uint32_t symbols = 0;  // of the tokenizer
  std::string known;     // to the tokenizer: resolved_alphabet, resolved_tokenizer or nothing
  TextForm form = TextForm::kRunning;
  std::vector<std::string> labels;  // kLabelledLines: in order of bytes
  uint64_t lines = 0;
  uint64_t tokens = 0;
  uint64_t fingerprint = 0;  // XXH3 of the file with its header zeroed
  bool reused = false;       // it was there already

  // Fills in the resolved_* fields of a configuration. resolved_symbols are those of the model: of
  // the tokenizer, and kLineSymbols where the text is lines.
  void Resolve(DataConfig& config) const;
};

// Makes `out_path` from the text config.path(), or keeps it if it was made from the same files
// (path, names, sizes, times of modification) with the same tokenizer and its checksum holds. A
// resolved configuration brings alphabet, tokenizer and labels with it; else they are those of the
// text, or of the tokenizer's files. `wanted`: the fingerprint that the tokens must have; 0: any.
// If they have another one, as of a text that has changed, it is returned, and `out_path` stays as
// it was. Memory is bounded whatever the size of the text, which is read once, or twice by a
// tokenizer that learns from it. Written under another name and renamed, so a kill leaves no half
// file; processes that race for it take turns by a lock on `out_path`.lock. Thread-safe. Errors,
// naming file and remedy: text missing, unreadable, empty or not UTF-8; a line that is not of
// `form` or has an unknown label; the tokenizer's files missing or wrong; disk full.
absl::StatusOr<TokenFileInfo> PrepareTokenFile(const DataConfig& config,
                                               const std::string& out_path,
                                               TextForm form = TextForm::kRunning,
                                               uint64_t wanted = 0);

// Immutable, so thread-safe. Movable.
class TokenFile {
 public:
  // Checks header and size, not the contents. Errors: NOT_FOUND; DATA_LOSS for a file that is
  // damaged or no token file.
  static absl::StatusOr<TokenFile> Open(const std::string& path);

  // Reads everything and compares with the checksum. Errors: DATA_LOSS.
  absl::Status VerifyContents() const;

  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return info_.tokens; }
  const TokenFileInfo& info() const { return info_; }
  // What the file was made from: text, its form, kind of tokenizer; files or settings of that.
  uint64_t source_key() const { return source_key_; }
  uint64_t tokenizer_key() const { return tokenizer_key_; }

  // Tokens first .. first + out.size() - 1. REQUIRES: they are within size().
  void Read(uint64_t first, std::span<int32_t> out) const;

  // One of info().lines. REQUIRES: index < info().lines.
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

// The tokens that a coordinator means by `config`, which it has resolved. `path` is opened as it is
// where it holds them, whatever has become of the text since; else it is made from the text.
// Thread-safe. Errors: those of PrepareTokenFile; FAILED_PRECONDITION: the text has other tokens,
// and `path` stays as it was.
absl::StatusOr<TokenFile> OpenResolvedTokens(const DataConfig& config, const std::string& path,
                                             TextForm form);

// On disk at offset 0.
struct TokenFileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t token_bytes;  // 1, 2 or 4
  uint32_t symbols;
  uint32_t form;  // TextForm
  uint64_t tokens;
  uint64_t known_bytes;
  uint64_t labels_bytes;
  uint64_t tokens_offset_bytes;
  uint64_t lines;
  uint64_t lines_offset_bytes;
  uint64_t source_key;
  uint64_t tokenizer_key;  // of the files or settings that `known` is from
  uint64_t contents_xxh3;  // of the file with this header zeroed
  uint64_t header_xxh3;    // of the fields above
};
static_assert(sizeof(TokenFileHeader) == 104);

inline constexpr uint64_t kTokenFileMagic = 0x4E454B4F54475554;  // "TUGTOKEN"
inline constexpr uint32_t kTokenFileVersion = 2;

}  // namespace tug

#endif  // TUG_DATA_TOKEN_FILE_H_
