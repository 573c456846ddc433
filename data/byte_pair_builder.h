#ifndef TUG_DATA_BYTE_PAIR_BUILDER_H_
#define TUG_DATA_BYTE_PAIR_BUILDER_H_

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

// An added token as a file lists it. Without a number it is one of the vocabulary.
struct AddedToken {
  std::string text;
  std::optional<uint64_t> number;
  bool special = false;
  bool normalized = true;
};

// Collects BytePairTables from what the files of a tokenizer list: tokens, then merges, then added
// tokens. `path` and `where` are for messages. Errors, one line with file and remedy. Not
// thread-safe.
class BytePairBuilder {
 public:
  // `name`: with a printable character for each byte (data/gpt2_bytes.h). A name that holds another
  // character is kept; no text has that token. Errors: a number that is too large or there twice.
  absl::Status AddToken(const std::string& path, const std::string& name, uint64_t number);

  // Of a merge that stands there twice the last counts, as for Hugging Face's tokenizers. Errors:
  // a part or a result that is no token.
  absl::Status AddMerge(const std::string& path, const std::string& where, std::string_view left,
                        std::string_view right);

  // Errors: two numbers for one text, or none.
  absl::Status AddAdded(const std::string& path, AddedToken token);

  // Errors: no tokens.
  absl::StatusOr<BytePairTables> Finish(const std::string& path);

 private:
  std::optional<uint32_t> Find(const std::string& text) const;

  absl::flat_hash_map<std::string, uint32_t> token_of_bytes_;
  absl::flat_hash_map<std::string, uint32_t> token_of_name_;  // of names that stand for no bytes
  absl::flat_hash_map<uint32_t, std::string> name_of_token_;
  std::vector<std::pair<uint32_t, uint32_t>> merges_;
  std::vector<AddedToken> added_;  // with numbers
  uint32_t size_ = 0;              // the greatest number and one
};

// INVALID_ARGUMENT: file, what is wrong with it, remedy.
absl::Status BadTokenizerFile(const std::string& path, const std::string& what);

// In quotes, on one line, shortened.
std::string QuotedToken(std::string_view text);

}  // namespace tug

#endif  // TUG_DATA_BYTE_PAIR_BUILDER_H_
