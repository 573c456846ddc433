// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_SCHEDULE_H_
#define TUG_BLOCKS_SCHEDULE_H_

#include <cstdint>

namespace tug {

// Partition size and credit that replace those of the job's CommConfig: a worker's part of proto
// Schedule. It never changes a bit of the result, since partitions are runs of segments.
struct ExchangeSchedule {
  uint32_t number = 0;  // 0: the job's own; the other fields are unused
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;  // of pushes
  friend bool operator==(const ExchangeSchedule&, const ExchangeSchedule&) = default;
};

}  // namespace tug

#endif  // TUG_BLOCKS_SCHEDULE_H_
