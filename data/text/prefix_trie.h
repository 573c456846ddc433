// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_PREFIX_TRIE_H_
#define TUG_DATA_TEXT_PREFIX_TRIE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tug {

// Finds all words, out of many, that are prefixes of a text, in time proportional to the longest
// match. Not thread-safe while words are added; immutable afterwards.
class PrefixTrie {
 public:
  // REQUIRES: `word` is not empty, value >= 0. A word added twice keeps its first value.
  void Add(std::string_view word, int32_t value) {
    uint32_t node = 0;
    for (const char c : word) {
      const auto [child, is_new] =
          children_.try_emplace(Key(node, c), static_cast<uint32_t>(nodes_.size()));
      nodes_[node].has_children = true;
      if (is_new) nodes_.emplace_back();
      node = child->second;
    }
    if (nodes_[node].value < 0) nodes_[node].value = value;
  }

  // Calls found(size_bytes, value) for every word that is a prefix of `text`, shortest first.
  // Returns whether more text could complete a longer word.
  template <typename Found>
  bool ForEachPrefix(std::string_view text, Found found) const {
    uint32_t node = 0;
    for (size_t size = 0; size < text.size();) {
      const auto child = children_.find(Key(node, text[size]));
      if (child == children_.end()) return false;
      node = child->second;
      ++size;
      if (nodes_[node].value >= 0) found(size, nodes_[node].value);
    }
    return nodes_[node].has_children;
  }

  bool empty() const { return children_.empty(); }

 private:
  struct Node {
    int32_t value = -1;  // -1 = no word ends here
    bool has_children = false;
  };

  static uint64_t Key(uint32_t node, char c) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(c);
  }

  std::vector<Node> nodes_ = {Node()};
  absl::flat_hash_map<uint64_t, uint32_t> children_;
};

}  // namespace tug

#endif  // TUG_DATA_TEXT_PREFIX_TRIE_H_
