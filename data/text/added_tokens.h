// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_ADDED_TOKENS_H_
#define TUG_DATA_TEXT_ADDED_TOKENS_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "data/text/prefix_trie.h"

namespace tug {

// Tokens with a fixed text, matched anywhere before merging ("<|user|>"). Matching follows Hugging
// Face's tokenizers (added_vocabulary.rs): tokens that are not normalized first, then the others in
// the text between; leftmost match, then longest. Not thread-safe while tokens are added; immutable
// afterwards.
class AddedTokens {
 public:
  // REQUIRES: `text` is not empty.
  void Add(std::string_view text, int32_t token, bool normalized) {
    (normalized ? second_ : first_).Add(text, token);
    max_bytes_ = std::max(max_bytes_, text.size());
  }

  // Calls on_text(text) and on_token(token, text) for the parts of `text` in order; on_text never
  // gets an empty part.
  template <typename OnText, typename OnToken>
  void Split(std::string_view text, OnText on_text, OnToken on_token) const {
    const auto split_again = [&](std::string_view part) {
      SplitBy(second_, part, on_text, on_token);
    };
    SplitBy(first_, text, split_again, on_token);
  }

  // Whether a match may begin before text[at] and end after it, for some continuation of `text`.
  bool MayReachOver(std::string_view text, size_t at) const;

  size_t max_bytes() const { return max_bytes_; }

 private:
  template <typename OnText, typename OnToken>
  static void SplitBy(const PrefixTrie& trie, std::string_view text, const OnText& on_text,
                      const OnToken& on_token) {
    for (size_t at = 0; at < text.size() && !trie.empty();) {
      size_t longest = 0;
      int32_t token = -1;
      trie.ForEachPrefix(text.substr(at), [&](size_t size, int32_t value) {
        longest = size;
        token = value;
      });
      if (longest == 0) {
        ++at;
        continue;
      }
      if (at > 0) on_text(text.substr(0, at));
      on_token(token, text.substr(at, longest));
      text.remove_prefix(at + longest);
      at = 0;
    }
    if (!text.empty()) on_text(text);
  }

  PrefixTrie first_;
  PrefixTrie second_;
  size_t max_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_DATA_TEXT_ADDED_TOKENS_H_
