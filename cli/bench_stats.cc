#include "cli/bench_stats.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace tug {

Spread SpreadOf(std::vector<double> values) {
  TUG_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return Spread{.median = median, .min = values.front(), .max = values.back()};
}

std::string FormatSpread(const Spread& spread, int decimals) {
  return absl::StrFormat("%.*f (%.*f..%.*f)", decimals, spread.median, decimals, spread.min,
                         decimals, spread.max);
}

double CpuSecondsOf(const std::function<void()>& work) {
  const auto now = [] {
    timespec time = {};
    TUG_CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

}  // namespace tug
