// SPDX-License-Identifier: Apache-2.0
#include "data/token_file.h"

#include <xxhash.h>

#include <cstddef>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tug {
namespace {

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, " is not a usable token file: ", what,
                                          "; delete it to rebuild it from the text"));
}

// Whether a region of `count` elements from `offset` on ends within `end`.
bool Fits(uint64_t offset, uint64_t count, uint64_t element_bytes, uint64_t end) {
  return offset <= end && count <= (end - offset) / element_bytes;
}

// Whether the header is consistent with a file of this size.
bool Consistent(const TokenFileHeader& header, uint64_t file_bytes) {
  if (header.token_bytes != 1 && header.token_bytes != 2 && header.token_bytes != 4) return false;
  if (header.form > static_cast<uint32_t>(TextForm::kLinePairs)) return false;
  if (header.lines_offset_bytes > file_bytes ||
      (file_bytes - header.lines_offset_bytes) % sizeof(TokenLine) != 0 ||
      (file_bytes - header.lines_offset_bytes) / sizeof(TokenLine) != header.lines) {
    return false;
  }
  return Fits(sizeof(header), header.known_bytes, 1, header.tokens_offset_bytes) &&
         Fits(sizeof(header) + header.known_bytes, header.labels_bytes, 1,
              header.tokens_offset_bytes) &&
         Fits(header.tokens_offset_bytes, header.tokens, header.token_bytes,
              header.lines_offset_bytes) &&
         header.symbols > 0 && header.symbols <= (uint64_t{1} << (8 * header.token_bytes)) &&
         header.symbols <=
             static_cast<uint32_t>(std::numeric_limits<int32_t>::max()) - kLineSymbols;
}

template <typename T>
void Widen(const std::byte* from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(token);
  }
}

}  // namespace

void TokenFileInfo::Resolve(DataConfig& config) const {
  if (config.tokenizer() == DataConfig::CHARACTER) {
    config.set_resolved_alphabet(known);
  } else {
    config.set_resolved_tokenizer(known);
  }
  config.set_resolved_symbols(symbols + (form == TextForm::kRunning ? 0 : kLineSymbols));
  config.set_resolved_fingerprint(fingerprint);
  config.mutable_resolved_labels()->Assign(labels.begin(), labels.end());
}

absl::StatusOr<TokenFile> TokenFile::Open(const std::string& path) {
  TokenFile result;
  ASSIGN_OR_RETURN(result.file_, MappedFile::Open(path));
  const std::span<const std::byte> bytes = result.file_.bytes();
  TokenFileHeader header;
  if (bytes.size() < sizeof(header)) return Damaged(path, "shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kTokenFileMagic)
    return Damaged(path, "it does not begin with the header of a token file");
  if (header.version != kTokenFileVersion) {
    return Damaged(path,
                   absl::StrCat("version ", header.version, " instead of ", kTokenFileVersion));
  }
  if (XXH3_64bits(&header, offsetof(TokenFileHeader, header_xxh3)) != header.header_xxh3) {
    return Damaged(path, "its header's checksum does not match");
  }
  if (!Consistent(header, bytes.size())) return Damaged(path, "truncated or extended");
  result.info_.symbols = header.symbols;
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(header);
  result.info_.known.assign(text, header.known_bytes);
  result.info_.form = static_cast<TextForm>(header.form);
  result.info_.labels = absl::StrSplit(
      absl::string_view(text + header.known_bytes, header.labels_bytes), '\n', absl::SkipEmpty());
  result.info_.lines = header.lines;
  result.info_.tokens = header.tokens;
  result.info_.text_bytes = header.text_bytes;
  result.info_.fingerprint = header.contents_xxh3;
  result.source_key_ = header.source_key;
  result.tokenizer_key_ = header.tokenizer_key;
  result.token_bytes_ = header.token_bytes;
  result.tokens_ = bytes.data() + header.tokens_offset_bytes;
  result.lines_ = bytes.data() + header.lines_offset_bytes;
  return result;
}

absl::Status TokenFile::VerifyContents() const {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  const std::byte zeros[sizeof(TokenFileHeader)] = {};
  XXH3_64bits_update(state, zeros, sizeof(zeros));
  const auto contents = file_.bytes().subspan(sizeof(zeros));
  XXH3_64bits_update(state, contents.data(), contents.size());
  const uint64_t xxh3 = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  if (xxh3 == info_.fingerprint) return absl::OkStatus();
  return Damaged(path(), "its checksum does not match");
}

void TokenFile::Read(uint64_t first, std::span<int32_t> out) const {
  TUG_CHECK(first <= size() && out.size() <= size() - first)
      << "tokens " << first << " + " << out.size() << " of " << size();
  const std::byte* from = tokens_ + first * token_bytes_;
  switch (token_bytes_) {
    case 1:
      return Widen<uint8_t>(from, out);
    case 2:
      return Widen<uint16_t>(from, out);
    default:
      return Widen<uint32_t>(from, out);
  }
}

TokenLine TokenFile::Line(uint64_t index) const {
  TUG_CHECK_LT(index, info_.lines);
  TokenLine line;
  std::memcpy(&line, lines_ + index * sizeof(line), sizeof(line));
  return line;
}

}  // namespace tug
