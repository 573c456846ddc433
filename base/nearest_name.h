// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NEAREST_NAME_H_
#define TUG_BASE_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace tug {

// The name that `word` is probably a misspelling of: the one with the fewest insertions, deletions,
// substitutions and swaps of neighbours, of equals the first; letters compare without case. Empty
// if every name needs more than a third of the word's length, or more than one for a short word.
std::string NearestName(std::string_view word, std::span<const std::string> names);

// "; did you mean NAME?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> names);

}  // namespace tug

#endif  // TUG_BASE_NEAREST_NAME_H_
