// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_BENCH_BENCH_SIZES_H_
#define TUG_LAB_BENCH_BENCH_SIZES_H_

// Parsing of option values, and the allowed sizes of a partition. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tug {

// "4096", "4K", "1M", "2G", "4KiB": powers of 1,024. INVALID_ARGUMENT, quoting the text, for
// anything else and for values beyond 64 bits.
absl::StatusOr<uint64_t> ParseByteSize(const std::string& text);

// "on" or "off". INVALID_ARGUMENT for anything else, naming the option and the text.
absl::StatusOr<bool> ParseOnOrOff(const std::string& option, const std::string& text);

// Checks that a partition is a power of two from 4 KiB to 256 MiB, so that it fits one message.
absl::Status CheckPartitionBytes(uint64_t bytes);

// Limit of a server's resident memory in bytes, for any number of workers and any order of pushes.
// Per parameter: weights, m and v (12), the sum (4), the previous copy that pulls may still need
// (4) and, with bf16 pulls, their copy (2); plus the granted credit of all workers and 64 MiB for
// the process itself.
uint64_t ServerMemoryLine(uint64_t parameters, bool bf16_pulls, uint64_t granted_credit_bytes);

}  // namespace tug

#endif  // TUG_LAB_BENCH_BENCH_SIZES_H_
