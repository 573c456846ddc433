#ifndef TUG_CLI_BENCH_SIZES_H_
#define TUG_CLI_BENCH_SIZES_H_

// Values of options as people write them, and what is allowed as the size of a partition. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// "4096", "4K", "1M", "2G", "4KiB": powers of 1,024. INVALID_ARGUMENT, naming the text: anything
// else, and what does not fit 64 bits.
absl::StatusOr<uint64_t> ParseByteSize(const std::string& text);

// "on" or "off". INVALID_ARGUMENT, naming the option and the text: anything else.
absl::StatusOr<bool> ParseOnOrOff(const std::string& option, const std::string& text);

// Whether one message can carry it: a power of two from 4 KiB to 256 MiB.
absl::Status CheckPartitionBytes(uint64_t bytes);

// The most that a server may hold resident, in bytes, however many workers push in whatever order.
// Per parameter: weights, m and v (12), the sum (4), the previous copy that pulls may still want
// (4) and, where pulls are bf16, their copy (2); then the granted credit of all workers together
// and 64 MiB for the process itself.
uint64_t ServerMemoryLine(uint64_t parameters, bool bf16_pulls, uint64_t granted_credit_bytes);

}  // namespace tug

#endif  // TUG_CLI_BENCH_SIZES_H_
