#ifndef TUG_DATA_ALPHABET_H_
#define TUG_DATA_ALPHABET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tug {

// Collects the distinct code points of a text that is read piece by piece. Not thread-safe.
class AlphabetCollector {
 public:
  AlphabetCollector();

  // `text` ends at a code point. `offset_bytes`: where it begins in its file, for messages. Errors:
  // INVALID_ARGUMENT, with the first byte that is not UTF-8 and the remedy.
  absl::Status Add(std::string_view text, uint64_t offset_bytes);

  // UTF-8, in code point order.
  std::string Utf8() const;

 private:
  std::vector<bool> seen_;  // by code point
};

}  // namespace tug

#endif  // TUG_DATA_ALPHABET_H_
