#ifndef TUG_DATA_TOKEN_FILE_H_
#define TUG_DATA_TOKEN_FILE_H_

// Tokens on disk, mapped into memory, so that data may exceed it. Little-endian:
//
//   header (TokenFileHeader, 72 bytes) | what the tokenizer has to know (data.resolved_alphabet or
//   data.resolved_tokenizer; else nothing) | zeros up to a multiple of 64 | tokens
//
// A token takes 1, 2 or 4 bytes, the least that holds the number of symbols. The file is a cache of
// a text: it is made again whenever text or settings have changed or it is damaged.

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "proto/job.pb.h"

namespace tug {

struct TokenFileInfo {
  uint32_t symbols = 0;
  std::string known;  // to the tokenizer: resolved_alphabet, resolved_tokenizer or nothing
  uint64_t tokens = 0;
  uint64_t fingerprint = 0;  // XXH3 of the file with its header zeroed: what is known and tokens
  bool reused = false;       // it was there already

  // Fills in the resolved_* fields of a configuration.
  void Resolve(DataConfig& config) const;
};

// Makes `out_path` from the text config.path(), or keeps it if it was made from the same files
// (path, names, sizes, times of modification) with the same tokenizer and its checksum holds.
// A resolved_tokenizer of the configuration is used; else the tokenizer's files are read, or it
// learns from the text. Memory is bounded whatever the size of the text, which is read once, or
// twice by a tokenizer that learns. Written under another name and renamed, so a kill leaves no
// half file; processes that race for it take turns by a lock on `out_path`.lock. Thread-safe.
// Errors, naming file and remedy: text missing, unreadable, empty or not UTF-8; the tokenizer's
// files missing or wrong; disk full.
absl::StatusOr<TokenFileInfo> PrepareTokenFile(const DataConfig& config,
                                               const std::string& out_path);

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
  // What the file was made from: text and tokenizer.
  uint64_t source_key() const { return source_key_; }

  // Tokens first .. first + out.size() - 1. REQUIRES: they are within size().
  void Read(uint64_t first, std::span<int32_t> out) const;

 private:
  TokenFile() = default;

  MappedFile file_;
  TokenFileInfo info_;
  uint64_t source_key_ = 0;
  uint32_t token_bytes_ = 0;
  const std::byte* tokens_ = nullptr;  // in file_
};

// On disk at offset 0.
struct TokenFileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t token_bytes;  // 1, 2 or 4
  uint32_t symbols;
  uint32_t reserved;  // 0
  uint64_t tokens;
  uint64_t known_bytes;
  uint64_t tokens_offset_bytes;
  uint64_t source_key;
  uint64_t contents_xxh3;  // of the file with this header zeroed
  uint64_t header_xxh3;    // of the fields above
};
static_assert(sizeof(TokenFileHeader) == 72);

inline constexpr uint64_t kTokenFileMagic = 0x4E454B4F54475554;  // "TUGTOKEN"
inline constexpr uint32_t kTokenFileVersion = 2;

}  // namespace tug

#endif  // TUG_DATA_TOKEN_FILE_H_
