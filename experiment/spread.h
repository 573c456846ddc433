#ifndef TUG_EXPERIMENT_SPREAD_H_
#define TUG_EXPERIMENT_SPREAD_H_

// What repeated measurements come to: a median and how far it may be trusted, and two cases
// compared in pairs. Pure, thread-safe; the same numbers for the same values, in whatever order.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tug {

// From so many values on the interval is a bootstrap's; below, smallest and largest.
inline constexpr size_t kLeastBootstrapped = 6;

// [low, high]: of at least kLeastBootstrapped values the 95% confidence interval of the median, by
// the percentile bootstrap with 4,000 samples (Efron and Tibshirani 1993, chapter 13); of fewer
// the smallest and the largest; of one there is none (low = median = high).
struct RepeatSpread {
  size_t count = 0;
  double median = 0;
  double low = 0;
  double high = 0;
};

// Values that are not finite are left out. None: no value is left.
std::optional<RepeatSpread> SpreadOfRepeats(std::vector<double> values);

// What figures of so many repeats are: "median [smallest, largest] of the repeats"; and what a bar
// from low to high is; empty: there is none.
std::string SpreadMeaning(size_t repeats);
std::string IntervalMeaning(size_t repeats);

// A case beside another one, repeat by repeat.
struct PairedComparison {
  RepeatSpread spread;  // of the ratios, or differences, of the pairs
  size_t better = 0;    // pairs in which the case is
  size_t worse = 0;
  double p_value = 1;  // two-sided sign test of pairs that differ
};

enum class Comparing { kRatio, kDifference };

// `pairs`: of the case, and of what it is compared with. Pairs with a value that is not finite, and
// ratios to 0, are left out. None: no pair is left.
std::optional<PairedComparison> ComparePairs(const std::vector<std::pair<double, double>>& pairs,
                                             Comparing comparing, bool lower_is_better);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SPREAD_H_
