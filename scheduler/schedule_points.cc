// SPDX-License-Identifier: Apache-2.0
#include "scheduler/schedule_points.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "config/largest_payload.h"

namespace tug {
namespace {

constexpr uint64_t kMinPartitionBytes = 4 << 10;  // the minimum a job may set; likewise for credit
constexpr uint64_t kMinCreditBytes = 16 << 10;

}  // namespace

SchedulePoint OwnPoint(const CommConfig& comm) {
  return {comm.partition_bytes(), comm.credit_bytes()};
}

uint64_t PullCreditBytes(const SchedulePoint& point, const CommConfig& comm) {
  return point == OwnPoint(comm) ? comm.pull_credit_bytes() : point.credit_bytes;
}

std::vector<SchedulePoint> SchedulePoints(uint64_t segment_bytes, uint64_t largest_block_bytes,
                                          uint64_t model_bytes) {
  TUG_CHECK(std::has_single_bit(segment_bytes));
  TUG_CHECK(largest_block_bytes > 0 && largest_block_bytes <= model_bytes);
  const uint64_t smallest = std::max(segment_bytes, kMinPartitionBytes);
  const uint64_t largest =
      std::max(smallest, std::min(std::bit_ceil(largest_block_bytes), kMaxTunedPartitionBytes));
  std::vector<SchedulePoint> points;
  for (uint64_t partition = smallest; partition <= largest; partition *= 2) {
    const uint64_t least = std::max(partition, kMinCreditBytes);
    for (uint64_t credit = least; credit <= std::max(least, std::bit_ceil(model_bytes));
         credit *= 2) {
      points.push_back({partition, credit});
    }
  }
  return points;
}

std::vector<SchedulePoint> SchedulePoints(const SegmentTable& table) {
  uint64_t segment = 0, largest = 0, model = 0;
  for (uint32_t id = 0; id < table.size(); ++id) {
    segment = std::max(segment, table.segment(id).bytes());
  }
  for (uint32_t block = 0; block < table.num_blocks(); ++block) {
    const uint64_t bytes = table.block_elements(block) * sizeof(float);
    largest = std::max(largest, bytes);
    model += bytes;
  }
  return SchedulePoints(std::bit_ceil(segment), largest, model);
}

}  // namespace tug
