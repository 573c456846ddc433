// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/spread.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "base/median.h"
#include "base/philox.h"

namespace tug {
namespace {

constexpr uint32_t kResamples = 4000;
constexpr double kTail = 0.025;

// `values`: sorted.
std::pair<double, double> BootstrapOfMedian(const std::vector<double>& values) {
  std::vector<double> medians;
  std::vector<double> drawn(values.size());
  for (uint32_t resample = 0; resample < kResamples; ++resample) {
    for (size_t i = 0; i < drawn.size(); ++i) {
      const uint32_t bits = Philox4x32({resample, static_cast<uint32_t>(i), 0, 0}, {0, 0})[0];
      drawn[i] = values[(uint64_t{bits} * values.size()) >> 32];
    }
    medians.push_back(Median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double part) {
    return medians[static_cast<size_t>(part * static_cast<double>(kResamples - 1))];
  };
  return {at(kTail), at(1 - kTail)};
}

// Two-sided probability that fair coins split at least as unevenly.
double SignTest(size_t better, size_t worse) {
  const size_t count = better + worse;
  double tail = 0;
  double log_ways = 0;  // log of the number of ways to choose k of count
  for (size_t k = 0; k <= std::min(better, worse); ++k) {
    if (k > 0) log_ways += std::log(static_cast<double>(count - k + 1) / static_cast<double>(k));
    tail += std::exp(log_ways - static_cast<double>(count) * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

}  // namespace

std::optional<RepeatSpread> SpreadOfRepeats(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  RepeatSpread spread{.count = values.size(),
                      .median = Median(values),
                      .low = values.front(),
                      .high = values.back()};
  if (values.size() >= kMinBootstrapped) {
    std::tie(spread.low, spread.high) = BootstrapOfMedian(values);
  }
  return spread;
}

std::string SpreadMeaning(size_t repeats) {
  if (repeats < 2) return "from one run each, without a spread";
  if (repeats < kMinBootstrapped) return "median [smallest, largest] of the repeats";
  return "median [95% bootstrap confidence interval of the median; with fewer than 6 values "
         "smallest and largest] of the repeats";
}

std::string IntervalMeaning(size_t repeats) {
  if (repeats < 2) return "";
  if (repeats < kMinBootstrapped) return "the range of the repeats";
  return "the 95% bootstrap confidence interval of the median, or the range of fewer than 6 values";
}

std::optional<PairedComparison> ComparePairs(const std::vector<std::pair<double, double>>& pairs,
                                             Comparing comparing, bool lower_is_better) {
  std::vector<double> compared;
  PairedComparison result;
  for (const auto& [value, other] : pairs) {
    const double one = comparing == Comparing::kRatio ? value / other : value - other;
    if (!std::isfinite(value) || !std::isfinite(other) || !std::isfinite(one)) continue;
    compared.push_back(one);
    if (value == other) continue;
    ++((value < other) == lower_is_better ? result.better : result.worse);
  }
  const std::optional<RepeatSpread> spread = SpreadOfRepeats(std::move(compared));
  if (!spread.has_value()) return std::nullopt;
  result.spread = *spread;
  result.p_value = SignTest(result.better, result.worse);
  return result;
}

}  // namespace tug
