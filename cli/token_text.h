#ifndef TUG_CLI_TOKEN_TEXT_H_
#define TUG_CLI_TOKEN_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tokenizer.h"

namespace tug {

// The text of tokens that come one at a time, for a terminal: UTF-8, cut between code points only.
// A token may be part of a code point (bytes), and what it stands for may depend on the one before
// it (a word's leading space): so a token is decoded together with those before it, and bytes that
// later tokens may complete are held back. Bytes that no token can complete become U+FFFD.
// Not thread-safe.
class TokenText {
 public:
  // `tokenizer` outlives this.
  explicit TokenText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Tokens whose text somebody else has shown. Errors: as Tokenizer::Decode.
  absl::Status Begin(std::span<const int32_t> tokens);
  // The text that has become complete. Errors: as Tokenizer::Decode.
  absl::StatusOr<std::string> Add(int32_t token);
  // What is held back, which no token completes any more.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> window_;  // the last tokens
  size_t shown_bytes_ = 0;       // of the window's text
  std::string held_;             // the rest of the window's text
};

}  // namespace tug

#endif  // TUG_CLI_TOKEN_TEXT_H_
