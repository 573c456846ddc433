// SPDX-License-Identifier: Apache-2.0
#include "data/text/added_tokens.h"

namespace tug {

bool AddedTokens::MayReachOver(std::string_view text, size_t at) const {
  for (size_t back = 1; back < max_bytes_ && back <= at; ++back) {
    const std::string_view from = text.substr(at - back);
    for (const PrefixTrie* trie : {&first_, &second_}) {
      bool reaches = false;
      const bool incomplete = trie->ForEachPrefix(
          from, [&](size_t size, int32_t /*token*/) { reaches = reaches || size > back; });
      if (reaches || incomplete) return true;
    }
  }
  return false;
}

}  // namespace tug
