#ifndef TUG_EXPERIMENT_NEAREST_NAME_H_
#define TUG_EXPERIMENT_NEAREST_NAME_H_

#include <string>
#include <vector>

namespace tug {

// The one that takes fewest insertions, deletions, replacements and swaps of neighbours to be
// made of `word` (the optimal string alignment distance), upper or lower case alike; empty where
// none is near: a third of its letters, or more than three, differ. Pure, thread-safe.
std::string NearestName(const std::string& word, const std::vector<std::string>& names);

// "; did you mean `name`?", or nothing.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& names);

}  // namespace tug

#endif  // TUG_EXPERIMENT_NEAREST_NAME_H_
