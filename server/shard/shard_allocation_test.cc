// SPDX-License-Identifier: Apache-2.0
// A lane allocates nothing for a message once its tables have grown.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory/count_allocations.h"
#include "blocks/weights_payload.h"
#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kVirtualWorkers = 5;
constexpr uint32_t kSegments = 8;

// Pushes and pulls all segments at a clock, newest virtual worker first.
void RunClock(Shard& shard, const Lease& gradient, Codec codec, Codec pulled, Home home,
              uint64_t clock) {
  const absl::Time now = absl::UnixEpoch();
  Message message;
  message.header.segment_count = 1;
  message.header.virtual_worker_count = 1;
  message.header.token_count = 1;
  for (uint32_t vw = kVirtualWorkers; vw-- > 0;) {
    for (uint32_t segment = 0; segment < kSegments; ++segment) {
      message.header.kind = MessageKind::kPush;
      message.header.codec = codec;
      message.header.sender = WorkerPeer(vw);
      message.header.virtual_worker = vw;
      message.header.first_segment = segment;
      message.header.clock = clock;
      message.header.version = clock;
      message.home = home;
      message.payload = gradient;
      shard.OnMessage(message, now);
      shard.OnMessage(message, now);  // a repeat
      message.header.kind = MessageKind::kPull;
      message.header.codec = pulled;
      message.header.clock = clock + 1;  // with pulls of changes: holds the previous version
      message.header.version = clock;
      message.payload = Lease();
      shard.OnMessage(message, now);
    }
  }
}

void ExpectNoneInSteadyState(SyncConfig::Policy policy) {
  for (const uint64_t elements : {uint64_t{1024}, uint64_t{16384}}) {
    for (const auto format : {CommConfig::FP32, CommConfig::BF16, CommConfig::CHANGES}) {
      if (format == CommConfig::CHANGES && policy != SyncConfig::BSP) continue;
      const Codec codec = format == CommConfig::BF16 ? Codec::kFrames : Codec::kNone;
      const Codec pulled = WeightsCodecOf(format);
      for (const Home home : {Home::kReceiver, Home::kSender}) {
        BlockTable blocks;
        blocks.add_blocks()->add_tensors()->add_shape(elements * kSegments);
        const SegmentTable table = *SegmentTable::Create(blocks, elements);
        ShardOptions options;
        options.virtual_workers = kVirtualWorkers;
        options.optimizer.set_learning_rate(1e-3);
        options.optimizer.set_clip(OptimizerConfig::OFF);
        options.sync.set_policy(policy);
        options.lane_of_segment.assign(kSegments, options.lane);
        options.block_names = {"block"};
        options.pull_format = format;
        uint64_t weights = 0;
        Shard shard(options, table,
                    {.send = [&](Outgoing m) { weights += m.header.kind == MessageKind::kWeights; },
                     .snapshot = [](const SegmentSnapshot&) {},
                     .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
        const std::vector<float> zeros(elements);
        const auto buffer = std::make_shared<AlignedBuffer>(elements * sizeof(float));
        const Lease gradient =
            codec == Codec::kFrames
                ? LeaseOf(EncodeFrames(zeros, elements, {kBf16Frame}))
                : Lease(buffer, std::span<const std::byte>(buffer->data(), buffer->size_bytes()));
        uint64_t clock = 0;
        for (; clock < 4; ++clock) RunClock(shard, gradient, codec, pulled, home, clock);
        const uint64_t before = CountAllocations();
        for (; clock < 8; ++clock) RunClock(shard, gradient, codec, pulled, home, clock);
        EXPECT_EQ(CountAllocations(), before)
            << elements << " elements, pulls " << CommConfig::Format_Name(format);
        EXPECT_EQ(weights, clock * kVirtualWorkers * kSegments);
      }
    }
  }
}

TEST(ShardAllocation, NoneInSteadyStateWherePushesAreSummed) {
  ExpectNoneInSteadyState(SyncConfig::BSP);
}

TEST(ShardAllocation, NoneInSteadyStateWherePushesAreUpdates) {
  ExpectNoneInSteadyState(SyncConfig::ASP);
}

}  // namespace
}  // namespace tug
