// SPDX-License-Identifier: Apache-2.0
#include "config/largest_payload.h"

#include <algorithm>

#include "base/check.h"
#include "proto/job.pb.h"
#include "proto/wire.h"

namespace tug {
namespace {

// Parts that do not grow with partitions and segments: clocks of all virtual workers in a replica,
// frame heads, messages of a collective with their trailers.
constexpr uint64_t kFixedBytes = uint64_t{4} << 20;
// Relative to an FP32 element, 4 bytes: encodings have at most 8 per element, frame heads less than
// 4 more.
constexpr uint64_t kTimesAPartition = 3;
// A replica has weights, m, v, shadow, and the previous version's weights in any encoding.
constexpr uint64_t kTimesASegment = 4 + kTimesAPartition;
// Norms: 16 bytes per segment that one lane may own. No lane has memory for more elements than
// this.
constexpr uint64_t kMaxLaneElements = uint64_t{1} << 36;
constexpr uint64_t kNormBytes = 16;

}  // namespace

uint64_t LargestPayload(const CommConfig& comm) {
  TUG_CHECK_GT(comm.segment_elements(), 0u) << "the job's fields are not filled";
  const uint64_t segment = comm.segment_elements() * sizeof(float);
  uint64_t partition = std::max<uint64_t>(comm.partition_bytes(), segment);
  if (comm.scheduler() == CommConfig::AUTO) {
    partition = std::max(partition, kMaxTunedPartitionBytes);
  }
  const uint64_t norms = kMaxLaneElements / comm.segment_elements() * kNormBytes;
  return std::min(kMaxPayloadBytes, kFixedBytes + std::max({kTimesAPartition * partition,
                                                            kTimesASegment * segment, norms}));
}

}  // namespace tug
