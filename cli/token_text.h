// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_TOKEN_TEXT_H_
#define TUG_CLI_TOKEN_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"

namespace tug {

// Incremental text of a stream of tokens, for a terminal: UTF-8, cut between code points only. A
// token may be part of a code point (bytes), and its text may depend on the token before it (a
// word's leading space). So each token is decoded together with those before it, and bytes that
// later tokens may complete are held back. Bytes that no token can complete become U+FFFD. Not
// thread-safe.
class TokenText {
 public:
  // `tokenizer` outlives this.
  explicit TokenText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Starts after these tokens, whose text is already shown. Errors: as Tokenizer::Decode.
  absl::Status Begin(std::span<const int32_t> tokens);
  // Adds a token; returns the text that is now complete. Errors: as Tokenizer::Decode.
  absl::StatusOr<std::string> Add(int32_t token);
  // Returns the text still held back, at the end of the stream.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  std::vector<int32_t> window_;  // the last tokens
  size_t shown_bytes_ = 0;       // of the window's text
  std::string held_;             // the window's text that is held back
};

}  // namespace tug

#endif  // TUG_CLI_TOKEN_TEXT_H_
