// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_ARITHMETIC_H_
#define TUG_LAB_BENCH_BENCH_ARITHMETIC_H_

// Arithmetic of one lane without a network: pushes go to a Shard as messages in memory.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/transport.h"

namespace tug {

struct ArithmeticSetting {
  uint64_t parameters = 100'000'000;  // rounded up to whole partitions of 4 MiB
  uint32_t virtual_workers = 2;
  Home home = Home::kReceiver;  // owner of the payloads' memory
  bool bf16_copy = false;       // whether the update also makes a bf16 copy, for pulls
  int runs = 5;
};

// Results by run, nanoseconds of CPU time. A clock contains every virtual worker's gradient of all
// parameters, one virtual worker after another, so that nothing stays in a cache between uses.
struct ArithmeticFigures {
  std::vector<double> sum_ns;     // a clock without the update, per parameter
  std::vector<double> update_ns;  // additional time of a clock with the update, per parameter
  std::vector<double> stream_ns;  // STREAM's a[i] += b[i], per element
};

// Measures three processes in turn: a lane without the update, one with it, STREAM. The first three
// rounds of each are not counted. REQUIRES: the process has one thread.
absl::StatusOr<ArithmeticFigures> MeasureArithmetic(const ArithmeticSetting& setting);

// Rate of the additions in a sum divided by STREAM's, by run: S virtual workers need S - 1
// additions per parameter. Empty if S is 1. Pure.
std::vector<double> SumOfStream(const ArithmeticFigures& figures, uint32_t virtual_workers);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_ARITHMETIC_H_
