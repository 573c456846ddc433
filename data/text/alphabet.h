// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_ALPHABET_H_
#define TUG_DATA_TEXT_ALPHABET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tug {

// Collects the distinct code points of a text read in pieces. Not thread-safe.
class AlphabetCollector {
 public:
  AlphabetCollector();

  // `text` ends at a code point boundary. `offset_bytes`: its offset in the file, for messages.
  // Errors: INVALID_ARGUMENT, with the first byte that is not UTF-8 and the remedy.
  absl::Status Add(std::string_view text, uint64_t offset_bytes);

  // The alphabet as UTF-8, in code point order.
  std::string Utf8() const;

 private:
  std::vector<bool> seen_;  // by code point
};

}  // namespace tug

#endif  // TUG_DATA_TEXT_ALPHABET_H_
