#ifndef TUG_CLI_BENCH_STATS_H_
#define TUG_CLI_BENCH_STATS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// What repeated measurements of one thing gave. Machines drift and neighbours disturb: a figure is
// a median, shown with its range.
struct Spread {
  double median = 0;  // of an even count: the mean of the two in the middle
  double min = 0;
  double max = 0;
};

// REQUIRES: values is not empty. Pure.
Spread SpreadOf(const std::vector<double>& values);

// "1.234 (1.200..1.310)" with `decimals` digits after the point.
std::string FormatSpread(const Spread& spread, int decimals);

// Seconds of the calling thread's processor time that one call takes: what it would take if nobody
// else ran on this core.
double CpuSecondsOf(const std::function<void()>& work);

// Keeps the calling thread on the core that it runs on, and returns its number.
absl::StatusOr<int> PinToThisCore();

}  // namespace tug

#endif  // TUG_CLI_BENCH_STATS_H_
