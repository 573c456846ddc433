#ifndef TUG_CLI_BENCH_ARITHMETIC_H_
#define TUG_CLI_BENCH_ARITHMETIC_H_

// One lane's arithmetic with no network: pushes are handed to a Shard as messages in memory.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/transport.h"

namespace tug {

struct ArithmeticSetting {
  uint64_t parameters = 100'000'000;  // rounded up to whole partitions of 4 MiB
  uint32_t virtual_workers = 2;
  Home home = Home::kReceiver;  // whose memory the payloads lie in
  bool bf16_copy = false;       // whether the update makes one, for pulls
  int runs = 5;
};

// Of one run each, nanoseconds of CPU time. A clock: every virtual worker's gradient of all
// parameters, one virtual worker after the other, so that nothing stays in a cache in between.
struct ArithmeticFigures {
  std::vector<double> sum_ns;     // of a clock without the update, per parameter
  std::vector<double> update_ns;  // what the update adds to a clock, per parameter
  std::vector<double> stream_ns;  // STREAM's a[i] += b[i], per element
};

// Three processes that take turns: a lane without the update, one with it, STREAM. Each does a
// round for nothing first. REQUIRES: the process has one thread.
absl::StatusOr<ArithmeticFigures> MeasureArithmetic(const ArithmeticSetting& setting);

// The rate of the additions in a sum over that of STREAM, by run: S virtual workers are S - 1
// additions a parameter. Empty if S is 1. Pure.
std::vector<double> SumOfStream(const ArithmeticFigures& figures, uint32_t virtual_workers);

}  // namespace tug

#endif  // TUG_CLI_BENCH_ARITHMETIC_H_
