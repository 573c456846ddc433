#include "cli/bench_stats.h"

#include <time.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/median.h"

namespace tug {

Spread SpreadOf(const std::vector<double>& values) {
  TUG_CHECK(!values.empty());
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return Spread{.median = Median(values), .min = *min, .max = *max};
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
