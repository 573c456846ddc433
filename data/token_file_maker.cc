// PrepareTokenFile, in steps:
//   1. take the lock `out_path`.lock;
//   2. keep the file if its source key and checksum hold;
//   3. first pass over the text, if the tokenizer wants the alphabet;
//   4. second pass: encode into `out_path`.tmp, header last;
//   5. sync, rename, sync the folder.

#include <fcntl.h>
#include <sys/file.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/file_writer.h"
#include "base/status_macros.h"
#include "data/alphabet.h"
#include "data/text_source.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kTokensAlignBytes = 64;

// Held until the descriptor closes, also by death.
absl::StatusOr<FileDescriptor> Lock(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return FileError(errno, "create the lock", path);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FileError(errno, "lock", path);
  }
  return fd;
}

uint64_t SourceKey(const TextSource& text, const DataConfig& config) {
  const uint64_t parts[] = {text.Key(), static_cast<uint64_t>(config.tokenizer()),
                            kTokenFileVersion};
  return XXH3_64bits(parts, sizeof(parts));
}

// The file as it is, if it need not be made again.
absl::StatusOr<TokenFileInfo> Reuse(const std::string& path, uint64_t source_key) {
  ASSIGN_OR_RETURN(const TokenFile file, TokenFile::Open(path));
  if (file.source_key() != source_key) return absl::FailedPreconditionError("of another text");
  RETURN_IF_ERROR(file.VerifyContents());
  TokenFileInfo info = file.info();
  info.reused = true;
  return info;
}

absl::StatusOr<std::string> CollectAlphabet(const TextSource& text) {
  AlphabetCollector collector;
  RETURN_IF_ERROR(text.ForEachPiece([&](std::string_view piece, uint64_t offset_bytes) {
    return collector.Add(piece, offset_bytes);
  }));
  return collector.Utf8();
}

uint32_t BytesPerToken(uint32_t symbols) {
  if (symbols <= 1u << 8) return 1;
  return symbols <= 1u << 16 ? 2 : 4;
}

void Narrow(std::span<const int32_t> tokens, uint32_t token_bytes, std::vector<std::byte>& out) {
  out.resize(tokens.size() * token_bytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::memcpy(out.data() + i * token_bytes, &tokens[i], token_bytes);  // little-endian
  }
}

// Steps 4 up to the sync.
absl::StatusOr<TokenFileInfo> Write(const TextSource& text, const Tokenizer& tokenizer,
                                    const std::string& alphabet, uint64_t source_key,
                                    const std::string& path) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  TokenFileHeader header = {};
  RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(&header, 1))));  // zeros for now
  RETURN_IF_ERROR(writer.Append(alphabet));
  const uint64_t padding = -writer.size_bytes() % kTokensAlignBytes;
  RETURN_IF_ERROR(writer.Append(std::string(padding, '\0')));

  header = {.magic = kTokenFileMagic,
            .version = kTokenFileVersion,
            .token_bytes = BytesPerToken(tokenizer.symbols()),
            .symbols = tokenizer.symbols(),
            .reserved = 0,
            .tokens = 0,
            .alphabet_bytes = alphabet.size(),
            .tokens_offset_bytes = writer.size_bytes(),
            .source_key = source_key,
            .contents_xxh3 = 0,
            .header_xxh3 = 0};
  std::vector<int32_t> tokens;
  std::vector<std::byte> bytes;
  RETURN_IF_ERROR(text.ForEachPiece([&](std::string_view piece, uint64_t offset) -> absl::Status {
    tokens.clear();
    RETURN_IF_ERROR(tokenizer.Encode(piece, offset, tokens));
    Narrow(tokens, header.token_bytes, bytes);
    header.tokens += tokens.size();
    return writer.Append(bytes);
  }));
  header.contents_xxh3 = writer.xxh3();
  header.header_xxh3 = XXH3_64bits(&header, offsetof(TokenFileHeader, header_xxh3));
  RETURN_IF_ERROR(writer.Overwrite(0, std::as_bytes(std::span(&header, 1))));
  RETURN_IF_ERROR(writer.Finish());
  return TokenFileInfo{.symbols = header.symbols,
                       .alphabet = alphabet,
                       .tokens = header.tokens,
                       .fingerprint = header.contents_xxh3,
                       .reused = false};
}

}  // namespace

absl::StatusOr<TokenFileInfo> PrepareTokenFile(const DataConfig& config,
                                               const std::string& out_path) {
  ASSIGN_OR_RETURN(const TextSource text, TextSource::Open(config.path()));
  ASSIGN_OR_RETURN(const TokenizerKind* kind, FindTokenizerKind(config.tokenizer()));
  std::error_code ignored;
  const std::string folder = std::filesystem::absolute(out_path, ignored).parent_path().string();
  if (std::filesystem::equivalent(folder, config.path(), ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token file ", out_path, " would lie among the text in data.path; put it elsewhere"));
  }
  ASSIGN_OR_RETURN(const FileDescriptor lock, Lock(out_path + ".lock"));
  const uint64_t source_key = SourceKey(text, config);
  if (auto info = Reuse(out_path, source_key); info.ok()) return info;

  std::string alphabet;
  if (kind->needs_alphabet) {
    ASSIGN_OR_RETURN(alphabet, CollectAlphabet(text));
  }
  ASSIGN_OR_RETURN(const auto tokenizer, kind->make(alphabet));
  const std::string partial = out_path + ".tmp";
  auto info = Write(text, *tokenizer, alphabet, source_key, partial);
  if (!info.ok()) {
    std::remove(partial.c_str());
    return info.status();
  }
  if (std::rename(partial.c_str(), out_path.c_str()) != 0) {
    return FileError(errno, "rename to", out_path);
  }
  RETURN_IF_ERROR(SyncFolder(folder));
  return info;
}

}  // namespace tug
