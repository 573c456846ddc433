// PrepareTokenFile, in steps:
//   1. take the lock `out_path`.lock;
//   2. keep the file if its source key and checksum hold;
//   3. read the tokenizer's files or learn from the text, if it has to know something that the
//      configuration does not hold yet;
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
#include "data/text_source.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

namespace tug {
namespace {

namespace fs = std::filesystem;

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

// Of a file: its name, size and time of modification; of a folder: those in it; "" = none.
absl::StatusOr<uint64_t> TokenizerFilesKey(const std::string& path) {
  if (path.empty()) return 0;
  std::error_code error;
  if (!fs::exists(path, error)) return FileError(ENOENT, "read data.tokenizer_path", path);
  ASSIGN_OR_RETURN(const TextSource files, TextSource::Open(path));
  return files.Key();
}

absl::StatusOr<uint64_t> SourceKey(const TextSource& text, const DataConfig& config) {
  std::string key = absl::StrCat(kTokenFileVersion, " ", text.Key(), " ", config.tokenizer(), " ");
  if (!config.resolved_tokenizer().empty()) {
    absl::StrAppend(&key, "known ", config.resolved_tokenizer());
  } else {
    ASSIGN_OR_RETURN(const uint64_t files, TokenizerFilesKey(config.tokenizer_path()));
    absl::StrAppend(&key, "from ", files, " ", config.pieces());
  }
  return XXH3_64bits(key.data(), key.size());
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

// `config` with all that its tokenizer has to know. An alphabet is always the text's own.
absl::StatusOr<DataConfig> Resolved(const TextSource& text, const TokenizerKind& kind,
                                    DataConfig config) {
  if (kind.resolve != nullptr && config.resolved_tokenizer().empty()) {
    RETURN_IF_ERROR(kind.resolve(text, config));
  }
  return config;
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
                                    const std::string& known, uint64_t source_key,
                                    const std::string& path) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path));
  TokenFileHeader header = {};
  RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(&header, 1))));  // zeros for now
  RETURN_IF_ERROR(writer.Append(known));
  const uint64_t padding = -writer.size_bytes() % kTokensAlignBytes;
  RETURN_IF_ERROR(writer.Append(std::string(padding, '\0')));

  header = {.magic = kTokenFileMagic,
            .version = kTokenFileVersion,
            .token_bytes = BytesPerToken(tokenizer.symbols()),
            .symbols = tokenizer.symbols(),
            .reserved = 0,
            .tokens = 0,
            .known_bytes = known.size(),
            .tokens_offset_bytes = writer.size_bytes(),
            .source_key = source_key,
            .contents_xxh3 = 0,
            .header_xxh3 = 0};
  std::vector<int32_t> tokens;
  std::vector<std::byte> bytes;
  const auto cut = [&](std::string_view piece) { return tokenizer.Cut(piece); };
  const auto take = [&](std::string_view piece, uint64_t offset_bytes) -> absl::Status {
    tokens.clear();
    RETURN_IF_ERROR(tokenizer.Encode(piece, offset_bytes, tokens));
    Narrow(tokens, header.token_bytes, bytes);
    header.tokens += tokens.size();
    return writer.Append(bytes);
  };
  RETURN_IF_ERROR(text.ForEachPiece(cut, take));
  header.contents_xxh3 = writer.xxh3();
  header.header_xxh3 = XXH3_64bits(&header, offsetof(TokenFileHeader, header_xxh3));
  RETURN_IF_ERROR(writer.Overwrite(0, std::as_bytes(std::span(&header, 1))));
  RETURN_IF_ERROR(writer.Finish());
  return TokenFileInfo{.symbols = header.symbols,
                       .known = known,
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
  ASSIGN_OR_RETURN(const uint64_t source_key, SourceKey(text, config));
  if (auto info = Reuse(out_path, source_key); info.ok()) return info;

  ASSIGN_OR_RETURN(const DataConfig resolved, Resolved(text, *kind, config));
  ASSIGN_OR_RETURN(const auto tokenizer, kind->make(resolved));
  const std::string& known = resolved.tokenizer() == DataConfig::CHARACTER
                                 ? resolved.resolved_alphabet()
                                 : resolved.resolved_tokenizer();
  const std::string partial = out_path + ".tmp";
  auto info = Write(text, *tokenizer, known, source_key, partial);
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
