#ifndef TUG_SCHEDULER_SCHEDULE_POINTS_H_
#define TUG_SCHEDULER_SCHEDULE_POINTS_H_

#include <cstdint>
#include <vector>

#include "exchange/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// What the tuner chooses: how blocks are cut, and how much of them may be on its way.
struct SchedulePoint {
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;
  friend bool operator==(const SchedulePoint&, const SchedulePoint&) = default;
};

// The one that a job asks for itself. `comm`, here and below: complete.
SchedulePoint OwnPoint(const CommConfig& comm);
// Credit of pulls of a job under a point: as the job says under its own, else that of pushes.
uint64_t PullCreditBytes(const SchedulePoint& point, const CommConfig& comm);

// All that the tuner may choose, powers of two: partitions from a segment (a smaller one is no
// other) and 4 KiB to the largest block and kMaxTunedPartitionBytes; for each, credits from one
// partition to the whole model. In order of partition, then of credit. Pure.
// REQUIRES: `segment_bytes` is a power of two; 0 < largest_block_bytes <= model_bytes.
std::vector<SchedulePoint> SchedulePoints(uint64_t segment_bytes, uint64_t largest_block_bytes,
                                          uint64_t model_bytes);
// Of the job whose segments these are. REQUIRES: at least one.
std::vector<SchedulePoint> SchedulePoints(const SegmentTable& table);

}  // namespace tug

#endif  // TUG_SCHEDULER_SCHEDULE_POINTS_H_
