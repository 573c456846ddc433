// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LIMITS_BENCH_STATS_H_
#define TUG_LIMITS_BENCH_STATS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// Summary of repeated measurements. Machines drift and neighbours disturb, so a figure is a median,
// shown with its range.
struct Spread {
  double median = 0;  // for an even count: mean of the two middle values
  double min = 0;
  double max = 0;
};

// REQUIRES: values is not empty. Pure.
Spread SpreadOf(const std::vector<double>& values);

// "1.234 (1.200..1.310)" with `decimals` digits after the point.
std::string FormatSpread(const Spread& spread, int decimals);

// Processor seconds of the calling thread for one call: its duration on an otherwise idle core.
double CpuSecondsOf(const std::function<void()>& work);

// Keeps the calling thread on its current core, and returns the core's number.
absl::StatusOr<int> PinToThisCore();

}  // namespace tug

#endif  // TUG_LIMITS_BENCH_STATS_H_
