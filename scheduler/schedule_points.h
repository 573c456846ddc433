// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SCHEDULER_SCHEDULE_POINTS_H_
#define TUG_SCHEDULER_SCHEDULE_POINTS_H_

#include <cstdint>
#include <vector>

#include "blocks/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// A choice of the tuner: partition size, and bytes that may be in flight.
struct SchedulePoint {
  uint64_t partition_bytes = 0;
  uint64_t credit_bytes = 0;
  friend bool operator==(const SchedulePoint&, const SchedulePoint&) = default;
};

// Point that the job sets itself. REQUIRES, here and below: `comm` is complete.
SchedulePoint OwnPoint(const CommConfig& comm);
// Pull credit under a point: comm.pull_credit_bytes under the job's own point, else the push
// credit.
uint64_t PullCreditBytes(const SchedulePoint& point, const CommConfig& comm);

// All points the tuner may choose from, in powers of two, sorted by partition, then credit.
// Partitions: from one segment (smaller ones would be the same) and 4 KiB to the largest block and
// kMaxTunedPartitionBytes. Credits: from one partition and 16 KiB to the whole model. Pure.
// REQUIRES: `segment_bytes` is a power of two; 0 < largest_block_bytes <= model_bytes.
std::vector<SchedulePoint> SchedulePoints(uint64_t segment_bytes, uint64_t largest_block_bytes,
                                          uint64_t model_bytes);
// Points for a job with these segments. REQUIRES: at least one segment.
std::vector<SchedulePoint> SchedulePoints(const SegmentTable& table);

}  // namespace tug

#endif  // TUG_SCHEDULER_SCHEDULE_POINTS_H_
