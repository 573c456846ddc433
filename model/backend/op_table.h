// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_BACKEND_OP_TABLE_H_
#define TUG_MODEL_BACKEND_OP_TABLE_H_

#include <chrono>
#include <cstddef>
#include <cstdio>

#include "model/op_profile.h"

namespace tug {

// Peak rates of the machine; 0: unknown.
struct OpPeaks {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

// For benchmarks: prints one line per kind of operation, averaged over steps: time, its share of
// `step_ms`, FLOPs and bytes per second, and their share of the peak.
inline void PrintOpTable(const OpProfile& profile, int steps, double step_ms,
                         const OpPeaks& peaks = {}) {
  const auto rate = [](double work, double ms, double peak) {
    if (work == 0) return void(std::printf(" %9s %7s", "", ""));
    const double per_second = work / ms * 1e3;
    std::printf(" %9.1f", per_second * 1e-9);
    if (peak == 0) return void(std::printf(" %7s", ""));
    std::printf(" %6.1f%%", 100 * per_second / peak);
  };
  std::printf("%-28s %9s %7s %9s %7s %9s %7s\n", "", "ms", "share", "GFLOP/s",
              peaks.flops_per_second > 0 ? "of peak" : "", "GB/s",
              peaks.bytes_per_second > 0 ? "of copy" : "");
  double known_ms = 0;
  for (size_t op = 0; op < kOps; ++op) {
    const OpProfile::Entry& entry = profile.entries()[op];
    const double ms = std::chrono::duration<double, std::milli>(entry.time).count() / steps;
    known_ms += ms;
    if (ms == 0) continue;
    std::printf("%-28s %9.2f %6.1f%%", kOpNames[op], ms, 100 * ms / step_ms);
    rate(entry.work.flops / steps, ms, peaks.flops_per_second);
    rate(entry.work.bytes / steps, ms, peaks.bytes_per_second);
    std::printf("\n");
  }
  std::printf("%-28s %9.2f %6.1f%%\n", "else", step_ms - known_ms,
              100 * (step_ms - known_ms) / step_ms);
}

}  // namespace tug

#endif  // TUG_MODEL_BACKEND_OP_TABLE_H_
