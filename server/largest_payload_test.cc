// SPDX-License-Identifier: Apache-2.0
#include "config/largest_payload.h"

#include <algorithm>
#include <cstdint>

#include "compression/codecs/frames.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/wire.h"
#include "server/sums/norm_entry.h"

namespace tug {
namespace {

CommConfig Comm(uint64_t segment_elements, uint64_t partition_bytes) {
  CommConfig comm;
  comm.set_segment_elements(segment_elements);
  comm.set_partition_bytes(partition_bytes);
  return comm;
}

// Payload formats: server/replication/copy_payload.h, compression/codecs/frames.h, blocks/runs.h.
TEST(LargestPayload, HoldsEveryPayloadOfAJob) {
  constexpr uint64_t kVirtualWorkers = 4096;
  for (uint64_t segment = 1 << 10; segment <= 1 << 24; segment *= 2) {
    for (uint64_t partition = 4 << 10; partition <= 256 << 20; partition *= 2) {
      const uint64_t limit = LargestPayload(Comm(segment, partition));
      const uint64_t bytes = std::max(partition, segment * sizeof(float));
      const uint64_t elements = bytes / sizeof(float);
      EXPECT_LE(limit, kMaxPayloadBytes);
      if (limit == kMaxPayloadBytes) continue;
      // Two of a block's segments may be shorter than the others.
      const uint64_t frames =
          8 * elements + (elements / segment + 2) * FrameBytes(MostEncodingBytes(0) + 8);
      EXPECT_GE(limit, frames) << segment << " " << partition;
      EXPECT_GE(limit, 8 + 8 * (elements / 2) + bytes);  // runs of one element
      EXPECT_GE(limit, kVirtualWorkers * sizeof(uint64_t) + sizeof(NormEntry) +
                           4 * segment * sizeof(float) + FrameBytes(MostEncodingBytes(segment)));
      EXPECT_GE(limit, (uint64_t{1} << 36) / segment * sizeof(NormEntry));
    }
  }
}

TEST(LargestPayload, IsAFewPartitionsByDefault) {
  EXPECT_EQ(LargestPayload(Comm(1 << 18, 4 << 20)), uint64_t{16} << 20);
}

TEST(LargestPayload, HasRoomForWhatTheTunerChooses) {
  CommConfig comm = Comm(1 << 18, 4 << 20);
  comm.set_scheduler(CommConfig::AUTO);
  EXPECT_GE(LargestPayload(comm), 2 * kMaxTunedPartitionBytes);
}

}  // namespace
}  // namespace tug
