// SPDX-License-Identifier: Apache-2.0
#include "limits/bench_stats.h"

#include <sched.h>
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

absl::StatusOr<int> PinToThisCore() {
  const int core = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  if (core >= 0) CPU_SET(core, &one);
  if (core < 0 || sched_setaffinity(0, sizeof(one), &one) != 0) {
    return absl::FailedPreconditionError(
        "cannot pin the benchmark to one core on this system: run it with taskset -c N");
  }
  return core;
}

}  // namespace tug
