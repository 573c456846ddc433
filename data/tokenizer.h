#ifndef TUG_DATA_TOKENIZER_H_
#define TUG_DATA_TOKENIZER_H_

// Text to tokens and back. A new tokenizer is a file, a row in Tokenizers() (tokenizer.cc), a case
// in job.proto and a test.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Errors: INVALID_ARGUMENT for a token outside 0 .. symbols() - 1.
  virtual absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const = 0;

  // Encode for text that is not from a file (a prompt).
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const;
};

struct TokenizerKind {
  DataConfig::Tokenizer kind;
  // Whether it is made from the text's alphabet (data.resolved_alphabet), which takes a pass over
  // the text.
  bool needs_alphabet;
  // `alphabet`: UTF-8 in code point order; empty unless needed.
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*make)(std::string_view alphabet);
};

// The table of tokenizers: a row per value of DataConfig.Tokenizer.
std::span<const TokenizerKind> Tokenizers();

// Errors: INVALID_ARGUMENT for a kind without a row.
absl::StatusOr<const TokenizerKind*> FindTokenizerKind(DataConfig::Tokenizer kind);

// The tokenizer of a resolved configuration (or of any, if the kind needs no alphabet).
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const DataConfig& config);

// The makers, for the table.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeByteTokenizer(std::string_view alphabet);
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeCharacterTokenizer(std::string_view alphabet);

}  // namespace tug

#endif  // TUG_DATA_TOKENIZER_H_
