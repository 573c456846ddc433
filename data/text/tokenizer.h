// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_TOKENIZER_H_
#define TUG_DATA_TEXT_TOKENIZER_H_

// Converts text to tokens and back. A new tokenizer needs a file, a row in Tokenizers()
// (tokenizer.cc), a value in job.proto and a test.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/source/text_source.h"
#include "proto/job.pb.h"

namespace tug {

// Immutable, hence thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Tokens are 0 .. symbols() - 1.
  virtual uint32_t symbols() const = 0;

  // Appends the tokens of `text`, which consists of whole code points. `offset_bytes`: its offset
  // in the file, for messages. Errors: INVALID_ARGUMENT, naming the text without a token, its
  // offset and the remedy; `tokens` is then unspecified.
  virtual absl::Status Encode(std::string_view text, uint64_t offset_bytes,
                              std::vector<int32_t>& tokens) const = 0;

  // Finds a split point at which the tokens do not depend on how text is divided into pieces: a
  // length n such that Encode(text + more) = Encode(first n bytes) + Encode(the rest + more) for
  // every `more`; 0 if that requires more text. Positive for any text of more than kMaxUnitBytes +
  // 64 bytes.
  virtual size_t Cut(std::string_view text) const = 0;

  // Errors: INVALID_ARGUMENT for a token outside 0 .. symbols() - 1.
  virtual absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const = 0;

  // Encodes text that is not from a file (a prompt).
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const;
};

// Maximum length of a word: tokenizers that encode by words split longer ones.
inline constexpr size_t kMaxUnitBytes = size_t{1} << 16;

// The encoded parts of a text; can be read repeatedly.
struct EncodedText {
  uint64_t size_bytes = 0;  // approximate
  // Like TextSource::ForEachPiece; parts that are encoded separately (lines) end a piece.
  std::function<absl::Status(const TextSource::Cut&, const TextSource::Take&, size_t piece_bytes)>
      for_each_piece;
};

struct TokenizerKind {
  DataConfig::Tokenizer kind;
  // Derives the tokenizer's data from the text or from files, in bounded memory, and stores it in
  // config.resolved_alphabet or config.resolved_tokenizer, which must be empty. Deterministic for
  // the same text, files and settings. Null if the tokenizer needs no data. Errors: missing or
  // invalid files, naming them and the remedy; unreadable text.
  absl::Status (*resolve)(const EncodedText& text, DataConfig& config);
  // Creates the tokenizer from a resolved configuration. Errors: INVALID_ARGUMENT if not resolved.
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*make)(const DataConfig& config);
};

// Table of tokenizers: a row per value of DataConfig.Tokenizer.
std::span<const TokenizerKind> Tokenizers();

// Errors: INVALID_ARGUMENT for a kind without a row.
absl::StatusOr<const TokenizerKind*> FindTokenizerKind(DataConfig::Tokenizer kind);

// Creates the tokenizer of a resolved configuration (or of any, if the kind needs no data).
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const DataConfig& config);

// Functions `make` of the table.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeByteTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeCharacterTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeGpt2BpeTokenizer(const DataConfig& config);

// Functions `resolve` of the table.
absl::Status ResolveCharacters(const EncodedText& text, DataConfig& config);
absl::Status ResolveSentencePiece(const EncodedText& text, DataConfig& config);
absl::Status ResolveGpt2Bpe(const EncodedText& text, DataConfig& config);

}  // namespace tug

#endif  // TUG_DATA_TEXT_TOKENIZER_H_
