// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_BYTE_PAIR_BUILDER_H_
#define TUG_DATA_TEXT_BYTE_PAIR_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tug {

class BytePairTables;

// An added token as listed in a file. Without `number`, the token must be known already.
struct AddedToken {
  std::string text;
  std::optional<uint64_t> number;
  bool special = false;
  bool normalized = true;
};

// Builds BytePairTables from the entries of a tokenizer's files: tokens, then merges, then added
// tokens. `path` and `where` are for messages. Errors: one line with file and remedy. Not
// thread-safe.
class BytePairBuilder {
 public:
  // `name`: a printable character for each byte (data/text/gpt2_bytes.h). A name with any other
  // character is kept, but never matches text. Errors: a number that is too large or already used.
  absl::Status AddToken(const std::string& path, const std::string& name, uint64_t number);

  // If a merge is listed twice, the last one counts, as in Hugging Face's tokenizers. Errors: a
  // part or the result is not a token.
  absl::Status AddMerge(const std::string& path, const std::string& where, std::string_view left,
                        std::string_view right);

  // Errors: a text with two numbers or none; a number that another token has.
  absl::Status AddAdded(const std::string& path, AddedToken token);

  // Errors: no tokens.
  absl::StatusOr<BytePairTables> Finish(const std::string& path);

 private:
  std::optional<uint32_t> Find(const std::string& text) const;

  absl::flat_hash_map<std::string, uint32_t> token_of_bytes_;
  absl::flat_hash_map<std::string, uint32_t> token_of_name_;  // names that do not encode bytes
  absl::flat_hash_map<uint32_t, std::string> name_of_token_;
  std::vector<std::pair<uint32_t, uint32_t>> merges_;
  std::vector<AddedToken> added_;  // all with numbers
  uint32_t size_ = 0;              // largest number + 1
};

// INVALID_ARGUMENT: file, problem, remedy.
absl::Status BadTokenizerFile(const std::string& path, const std::string& what);

// Quotes a token on one line, at most 80 bytes of it.
std::string QuotedToken(std::string_view text);

}  // namespace tug

#endif  // TUG_DATA_TEXT_BYTE_PAIR_BUILDER_H_
