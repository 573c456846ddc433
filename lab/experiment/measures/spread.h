// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_MEASURES_SPREAD_H_
#define TUG_LAB_EXPERIMENT_MEASURES_SPREAD_H_

// Statistics of repeated measurements: a median with an interval, and two cases compared in pairs.
// Pure, thread-safe; results do not depend on the order of values.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tug {

// Number of values from which on the interval is a bootstrap's; below, it is smallest to largest.
inline constexpr size_t kMinBootstrapped = 6;

// [low, high]: for at least kMinBootstrapped values the 95% confidence interval of the median, by
// the percentile bootstrap with 4,000 samples (Efron and Tibshirani 1993, chapter 13); for fewer
// the smallest and the largest; for one low = median = high.
struct RepeatSpread {
  size_t count = 0;
  double median = 0;
  double low = 0;
  double high = 0;
};

// Skips values that are not finite. None: no value is left.
std::optional<RepeatSpread> SpreadOfRepeats(std::vector<double> values);

// Meaning of the figures of `repeats` repeats: "median [smallest, largest] of the repeats"; meaning
// of a bar from low to high; empty: there is no bar.
std::string SpreadMeaning(size_t repeats);
std::string IntervalMeaning(size_t repeats);

// A case compared with another one, repeat by repeat.
struct PairedComparison {
  RepeatSpread spread;  // of the ratios, or differences, of the pairs
  size_t better = 0;    // pairs in which the case is better
  size_t worse = 0;
  double p_value = 1;  // two-sided sign test over pairs that differ
};

enum class Comparing { kRatio, kDifference };

// `pairs`: values of the case and of the one it is compared with. Skips pairs with a value that is
// not finite, and ratios to 0. None: no pair is left.
std::optional<PairedComparison> ComparePairs(const std::vector<std::pair<double, double>>& pairs,
                                             Comparing comparing, bool lower_is_better);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_MEASURES_SPREAD_H_
