// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_NEAREST_NAME_H_
#define TUG_LAB_EXPERIMENT_PLAN_NEAREST_NAME_H_

#include <string>
#include <vector>

namespace tug {

// The name closest to `word`, ignoring case: the one with the fewest insertions, deletions,
// replacements and swaps of neighbours (the optimal string alignment distance). Empty if none is
// within a third of the letters of `word`, at least 1 and at most 3. Pure, thread-safe.
std::string NearestName(const std::string& word, const std::vector<std::string>& names);

// "; did you mean `name`?", or "".
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_NEAREST_NAME_H_
