#ifndef TUG_DATA_TOKENIZER_H_
#define TUG_DATA_TOKENIZER_H_

// Text to tokens and back. A new tokenizer is a file, a row in Tokenizers() (tokenizer.cc), a case
// in job.proto and a test.

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
#include "data/text_source.h"
#include "proto/job.pb.h"

namespace tug {

// Immutable, so thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Tokens are 0 .. symbols() - 1.
  virtual uint32_t symbols() const = 0;

  // Appends the tokens of `text`, which holds whole code points. `offset_bytes`: where it begins in
  // its file, for messages. Errors: INVALID_ARGUMENT, naming what has no token, where it is and
  // what to do; `tokens` is then undefined.
  virtual absl::Status Encode(std::string_view text, uint64_t offset_bytes,
                              std::vector<int32_t>& tokens) const = 0;

  // Where long text may be cut, so that its tokens do not depend on the pieces it is read in: a
  // length n with Encode(text + more) = Encode(first n bytes) + Encode(the rest + more) whatever
  // `more` is; or 0 for "not known without more of it". Positive for any text of more than
  // kMaxUnitBytes + 64 bytes.
  virtual size_t Cut(std::string_view text) const = 0;

  // Errors: INVALID_ARGUMENT for a token outside 0 .. symbols() - 1.
  virtual absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const = 0;

  // Encode for text that is not from a file (a prompt).
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const;
};

// Tokenizers that look at words cut text without an end of word after so many bytes.
inline constexpr size_t kMaxUnitBytes = size_t{1} << 16;

// What of a text is encoded, to be read again and again.
struct EncodedText {
  uint64_t size_bytes = 0;  // about
  // As TextSource::ForEachPiece; ends of what is encoded by itself (lines) are ends of pieces.
  std::function<absl::Status(const TextSource::Cut&, const TextSource::Take&, size_t piece_bytes)>
      for_each_piece;
};

struct TokenizerKind {
  DataConfig::Tokenizer kind;
  // Sets what the tokenizer has to know of the text or of files (config.resolved_alphabet or
  // config.resolved_tokenizer), which are not set, in bounded memory; the same for the same text,
  // files and settings. Null if it has to know nothing. Errors: files missing or wrong, naming
  // them and the remedy; text that cannot be read.
  absl::Status (*resolve)(const EncodedText& text, DataConfig& config);
  // From a configuration that is resolved. Errors: INVALID_ARGUMENT if it is not.
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*make)(const DataConfig& config);
};

// The table of tokenizers: a row per value of DataConfig.Tokenizer.
std::span<const TokenizerKind> Tokenizers();

// Errors: INVALID_ARGUMENT for a kind without a row.
absl::StatusOr<const TokenizerKind*> FindTokenizerKind(DataConfig::Tokenizer kind);

// The tokenizer of a resolved configuration (or of any, if the kind has to know nothing).
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const DataConfig& config);

// The makers, for the table.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeByteTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeCharacterTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(const DataConfig& config);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeGpt2BpeTokenizer(const DataConfig& config);

// What they have to know, for the table.
absl::Status ResolveCharacters(const EncodedText& text, DataConfig& config);
absl::Status ResolveSentencePiece(const EncodedText& text, DataConfig& config);
absl::Status ResolveGpt2Bpe(const EncodedText& text, DataConfig& config);

}  // namespace tug

#endif  // TUG_DATA_TOKENIZER_H_
