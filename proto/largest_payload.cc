#include "proto/largest_payload.h"

#include <algorithm>

#include "base/check.h"
#include "proto/job.pb.h"
#include "proto/wire.h"

namespace tug {
namespace {

// What does not grow with partitions and segments: clocks of all virtual workers in a copy, frame
// heads, messages of a collective with their trailers.
constexpr uint64_t kFixedBytes = uint64_t{4} << 20;
// Of an FP32 element, 4 bytes: encodings are at most 8, and their frames' heads less than 4 more.
constexpr uint64_t kTimesAPartition = 3;
// A copy has weights, m, v, shadow, and the weights of the version before in any encoding.
constexpr uint64_t kTimesASegment = 4 + kTimesAPartition;
// Norms: 16 bytes a segment, of all that one lane may own. No lane has memory for more elements.
constexpr uint64_t kMostElementsOfALane = uint64_t{1} << 36;
constexpr uint64_t kNormBytes = 16;

}  // namespace

uint64_t LargestPayload(const CommConfig& comm) {
  TUG_CHECK_GT(comm.segment_elements(), 0u) << "the job's fields are not filled";
  const uint64_t segment = comm.segment_elements() * sizeof(float);
  uint64_t partition = std::max<uint64_t>(comm.partition_bytes(), segment);
  if (comm.scheduler() == CommConfig::AUTO) {
    partition = std::max(partition, kMaxTunedPartitionBytes);
  }
  const uint64_t norms = kMostElementsOfALane / comm.segment_elements() * kNormBytes;
  return std::min(kMaxPayloadBytes, kFixedBytes + std::max({kTimesAPartition * partition,
                                                            kTimesASegment * segment, norms}));
}

}  // namespace tug
