#ifndef TUG_EXCHANGE_SCHEDULE_H_
#define TUG_EXCHANGE_SCHEDULE_H_

#include <cstdint>

namespace tug {

// How blocks are cut and how much of them is sent at a time, in place of what the job's CommConfig
// says: a worker's part of proto Schedule. It never changes a bit of the result, since partitions
// are runs of segments.
struct ExchangeSchedule {
  uint32_t number = 0;  // 0: the job's own, and the rest says nothing
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;  // of pushes
  friend bool operator==(const ExchangeSchedule&, const ExchangeSchedule&) = default;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_SCHEDULE_H_
