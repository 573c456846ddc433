// SPDX-License-Identifier: Apache-2.0
// PrepareTokenFile, in steps:
//   1. Take the lock `out_path`.lock.
//   2. Keep the existing file if its source key, tokenizer and checksum match.
//   3. Resolve what the configuration lacks: read the tokenizer's files, or pass over the text to
//      train the tokenizer, and to collect the labels of lines.
//   4. Encode into `out_path`.tmp in a last pass, header last; sync.
//   5. If the tokens are not the wanted ones, delete the file; else rename it and sync the folder.

#include <sys/stat.h>
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "base/files/file_lock.h"
#include "base/files/file_writer.h"
#include "base/status_macros.h"
#include "data/line_text.h"
#include "data/source/text_source.h"
#include "data/text/gpt2_files.h"
#include "data/text/sentencepiece_files.h"
#include "data/text/tokenizer.h"
#include "data/token_file.h"
#include "data/token_lines.h"

namespace tug {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kTokensAlignBytes = 64;

// Increment on any change of the tokens of a text: how bytes become text and lines, how a tokenizer
// divides them, which files of a tokenizer are read or refused. Token files of earlier releases, in
// a run or a --cache-dir, are then rebuilt.
constexpr uint64_t kTextRules = 4;

uint64_t SourceKey(const TextSource& text, const DataConfig& config, TextForm form) {
  const uint64_t parts[] = {text.Key(), static_cast<uint64_t>(config.tokenizer()),
                            static_cast<uint64_t>(form), kTokenFileVersion, kTextRules};
  return XXH3_64bits(parts, sizeof(parts));
}

// Tokenizer data of a configuration; empty if it is not resolved or the tokenizer needs none.
const std::string& KnownTo(const DataConfig& config) {
  return config.tokenizer() == DataConfig::CHARACTER ? config.resolved_alphabet()
                                                     : config.resolved_tokenizer();
}

// Files to read for data.tokenizer_path.
std::vector<std::string> TokenizerFiles(const DataConfig& config) {
  const std::string& path = config.tokenizer_path();
  if (config.tokenizer() == DataConfig::GPT2_BPE) return Gpt2FilesIn(path);
  if (config.tokenizer() == DataConfig::SENTENCEPIECE) return SentencePieceFilesOf(path);
  return {path};
}

// Hash of the tokenizer's files (paths, sizes, modification times), or its training settings.
absl::StatusOr<uint64_t> TokenizerKey(const DataConfig& config) {
  if (config.tokenizer_path().empty()) {
    return config.tokenizer() == DataConfig::SENTENCEPIECE ? config.pieces() : 0;
  }
  std::string key;
  for (const std::string& path : TokenizerFiles(config)) {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) {
      return FileError(errno, "read data.tokenizer_path", path);
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError(
          absl::StrCat("data.tokenizer_path ", path, " is not a regular file: set it to one"));
    }
    std::error_code ignored;
    absl::StrAppend(&key, std::filesystem::canonical(path, ignored).string(), "\n", info.st_size,
                    " ", info.st_mtim.tv_sec, " ", info.st_mtim.tv_nsec, "\n");
  }
  return XXH3_64bits(key.data(), key.size());
}

// Info of the existing file if it can be kept; otherwise an error.
absl::StatusOr<TokenFileInfo> Reuse(const std::string& path, const DataConfig& config,
                                    uint64_t source_key) {
  ASSIGN_OR_RETURN(const TokenFile file, TokenFile::Open(path));
  const auto other = absl::FailedPreconditionError("of another text or tokenizer");
  if (file.source_key() != source_key) return other;
  if (!KnownTo(config).empty()) {
    if (file.info().known != KnownTo(config)) return other;
  } else {
    ASSIGN_OR_RETURN(const uint64_t tokenizer_key, TokenizerKey(config));
    if (file.tokenizer_key() != tokenizer_key) return other;
  }
  RETURN_IF_ERROR(file.VerifyContents());
  TokenFileInfo info = file.info();
  info.reused = true;
  return info;
}

// `config` with the tokenizer's data resolved.
absl::StatusOr<DataConfig> Resolved(const TextSource& text, const TokenizerKind& kind,
                                    TextForm form, DataConfig config) {
  if (kind.resolve != nullptr && KnownTo(config).empty()) {
    RETURN_IF_ERROR(kind.resolve(EncodedTextOf(text, form), config));
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

// Encodes a text into the file, after its header, and records the layout.
class TokenFileWriter {
 public:
  TokenFileWriter(FileWriter& file, const TextSource& text, const Tokenizer& tokenizer)
      : file_(file), text_(text), tokenizer_(tokenizer) {
    header_.magic = kTokenFileMagic;
    header_.version = kTokenFileVersion;
    header_.token_bytes = BytesPerToken(tokenizer.symbols());
    header_.symbols = tokenizer.symbols();
  }

  // Sets the remaining fields of `info`.
  absl::Status Write(TokenFileInfo& info, uint64_t source_key, uint64_t tokenizer_key) {
    const TokenFileHeader zeros = {};
    RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(&zeros, 1))));
    RETURN_IF_ERROR(file_.Append(info.known));
    for (const std::string& label : info.labels) RETURN_IF_ERROR(file_.Append(label + "\n"));
    header_.known_bytes = info.known.size();
    header_.labels_bytes = file_.size_bytes() - sizeof(zeros) - info.known.size();
    header_.form = static_cast<uint32_t>(info.form);
    header_.source_key = source_key;
    header_.tokenizer_key = tokenizer_key;
    RETURN_IF_ERROR(Align());
    header_.tokens_offset_bytes = file_.size_bytes();
    RETURN_IF_ERROR(info.form == TextForm::kRunning ? WriteRunningText()
                                                    : WriteLines(info.form, info.labels));
    header_.contents_xxh3 = file_.xxh3();
    header_.header_xxh3 = XXH3_64bits(&header_, offsetof(TokenFileHeader, header_xxh3));
    info.symbols = header_.symbols;
    info.lines = header_.lines;
    info.tokens = header_.tokens;
    info.text_bytes = header_.text_bytes;
    info.fingerprint = header_.contents_xxh3;
    return file_.Overwrite(0, std::as_bytes(std::span(&header_, 1)));
  }

 private:
  absl::Status Align() {
    return file_.Append(std::string(-file_.size_bytes() % kTokensAlignBytes, '\0'));
  }

  absl::Status AppendTokens(std::span<const int32_t> tokens) {
    Narrow(tokens, header_.token_bytes, bytes_);
    header_.tokens += tokens.size();
    return file_.Append(bytes_);
  }

  absl::Status WriteRunningText() {
    std::vector<int32_t> tokens;
    RETURN_IF_ERROR(
        text_.ForEachPiece([&](std::string_view piece) { return tokenizer_.Cut(piece); },
                           [&](std::string_view piece, uint64_t offset_bytes) -> absl::Status {
                             tokens.clear();
                             header_.text_bytes += piece.size();
                             RETURN_IF_ERROR(tokenizer_.Encode(piece, offset_bytes, tokens));
                             return AppendTokens(tokens);
                           }));
    header_.lines_offset_bytes = file_.size_bytes();
    return absl::OkStatus();
  }

  absl::Status WriteLines(TextForm form, std::span<const std::string> labels) {
    TokenLines lines(form, labels, file_.path() + ".lines");
    RETURN_IF_ERROR(lines.Encode(text_, tokenizer_, [this](std::span<const int32_t> tokens) {
      return AppendTokens(tokens);
    }));
    RETURN_IF_ERROR(Align());
    header_.lines_offset_bytes = file_.size_bytes();
    header_.lines = lines.lines();
    header_.text_bytes = lines.text_bytes();
    return lines.ForEachPiece(
        [this](std::span<const std::byte> piece) { return file_.Append(piece); });
  }

  FileWriter& file_;
  const TextSource& text_;
  const Tokenizer& tokenizer_;
  TokenFileHeader header_ = {};
  std::vector<std::byte> bytes_;
};

// Step 4.
absl::Status WriteTokenFile(const TextSource& text, const Tokenizer& tokenizer, uint64_t source_key,
                            uint64_t tokenizer_key, const std::string& path, TokenFileInfo& info) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  RETURN_IF_ERROR(TokenFileWriter(file, text, tokenizer).Write(info, source_key, tokenizer_key));
  return file.Finish();
}

}  // namespace

absl::StatusOr<TokenFileInfo> PrepareTokenFile(const DataConfig& config,
                                               const std::string& out_path, TextForm form,
                                               uint64_t wanted) {
  ASSIGN_OR_RETURN(const TextSource text, TextSource::Open(config.path(), TextRulesOf(config)));
  ASSIGN_OR_RETURN(const TokenizerKind* kind, FindTokenizerKind(config.tokenizer()));
  std::error_code ignored;
  const std::string folder = std::filesystem::absolute(out_path, ignored).parent_path().string();
  if (std::filesystem::equivalent(folder, config.path(), ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", out_path,
                     " would be in the folder of the text (data.path); put it in another folder"));
  }
  ASSIGN_OR_RETURN(const FileDescriptor lock, AwaitFileLock(out_path + ".lock"));
  const uint64_t source_key = SourceKey(text, config, form);
  if (auto info = Reuse(out_path, config, source_key); info.ok()) return info;

  // A resolved configuration does not need the tokenizer's files, so they may be missing.
  uint64_t tokenizer_key = 0;
  if (KnownTo(config).empty()) {
    ASSIGN_OR_RETURN(tokenizer_key, TokenizerKey(config));
  }
  ASSIGN_OR_RETURN(const DataConfig resolved, Resolved(text, *kind, form, config));
  TokenFileInfo info{.known = kind->resolve == nullptr ? "" : KnownTo(resolved), .form = form};
  if (form == TextForm::kLabelledLines) {
    info.labels.assign(config.resolved_labels().begin(), config.resolved_labels().end());
    if (info.labels.empty()) {
      ASSIGN_OR_RETURN(info.labels, CollectLabels(text));
    }
  }
  ASSIGN_OR_RETURN(const auto tokenizer, kind->make(resolved));
  const std::string partial = out_path + ".tmp";
  const absl::Status written =
      WriteTokenFile(text, *tokenizer, source_key, tokenizer_key, partial, info);
  if (!written.ok()) {
    std::remove(partial.c_str());
    return written;
  }
  if (wanted != 0 && info.fingerprint != wanted) {
    std::remove(partial.c_str());
    return info;
  }
  if (std::rename(partial.c_str(), out_path.c_str()) != 0) {
    return FileError(errno, "rename to", out_path);
  }
  RETURN_IF_ERROR(SyncFolder(folder));
  return info;
}

absl::StatusOr<TokenFile> OpenResolvedTokens(const DataConfig& config, const std::string& path,
                                             TextForm form) {
  const uint64_t wanted = config.resolved_fingerprint();
  absl::StatusOr<TokenFile> there = TokenFile::Open(path);
  if (there.ok() && there->info().fingerprint == wanted && there->info().form == form &&
      there->VerifyContents().ok()) {
    return there;
  }
  ASSIGN_OR_RETURN(const TokenFileInfo info, PrepareTokenFile(config, path, form, wanted));
  if (info.fingerprint == wanted) return TokenFile::Open(path);
  return absl::FailedPreconditionError(absl::StrCat(
      "the text in ", config.path(),
      " differs from the text that the coordinator reads: copy the same files to this host"));
}

}  // namespace tug
