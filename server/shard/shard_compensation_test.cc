// SPDX-License-Identifier: Apache-2.0
// Delay compensation (Zheng et al. 2017) of pushes that are updates by themselves.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

class CompensatedUpdateTest : public UpdateShardTest {
 protected:
  CompensatedUpdateTest()
      : UpdateShardTest([] {
          ShardOptions options = SspOptions(Options(OptimizerConfig::OFF));
          options.sync.set_delay_compensation(0.5);
          return options;
        }()) {}
};

TEST_F(CompensatedUpdateTest, AddsWhatTheWeightsHaveMovedSinceTheyWereServed) {
  const auto push = [&](uint32_t vw, uint64_t clock, uint64_t version, float mean) {
    WireHeader header = PushHeader(0, vw, clock);
    header.sender = WorkerPeer(vw);
    header.version = version;
    Deliver(header, std::vector<float>(2 * kSegment, mean * kTokens));
  };
  PullFor(0, 0, 0);
  PullFor(0, 1, 0);
  push(0, 0, 0, 2.0f);  // not stale: uncompensated
  EXPECT_EQ(Weight(0), -2.0f);
  push(1, 0, 0, 3.0f);  // 3 + 0.5 * 9 * (-2 - 0)
  EXPECT_EQ(Weight(0), -2.0f - (3.0f - 9.0f));
  EXPECT_EQ(Weight(1), Weight(0));
  EXPECT_EQ(shard_.weights(1)[kSegment - 1], Weight(0));
  EXPECT_EQ(records_.back().flags, 0u);
  push(0, 1, 1, 1.0f);  // computed with weights that the lane did not serve
  EXPECT_EQ(Weight(0), 4.0f - 1.0f);
  EXPECT_NE(records_.back().flags & OrderRecord::kNotCompensated, 0u);
}

TEST_F(CompensatedUpdateTest, KeepsTheWeightsOfAsManyWorkersAsThereAreVirtualOnes) {
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.virtual_worker_count = 1;
  pull.want = Want::kAtLeast;
  for (const uint32_t worker : {0u, 1u, 2u}) {
    pull.sender = WorkerPeer(worker);
    Deliver(pull);
  }
  PushMean(1, 0, 0, 0);  // another block
  PushMean(0, 1, 0, 0);  // a virtual worker that was never served; not stale
  WireHeader push = PushHeader(0, 0, 0);
  push.sender = WorkerPeer(0);
  Deliver(push, std::vector<float>(2 * kSegment, kTokens));
  EXPECT_NE(records_.back().flags & OrderRecord::kNotCompensated, 0u) << "2 took its place";
  push.virtual_worker = 1;
  push.clock = 1;
  push.sender = WorkerPeer(2);
  Deliver(push, std::vector<float>(2 * kSegment, kTokens));
  EXPECT_EQ(records_.back().flags & OrderRecord::kNotCompensated, 0u);
}

TEST_F(CompensatedUpdateTest, SkipsAGradientThatCompensationMakesInfinite) {
  const auto push = [&](uint32_t vw, float mean) {
    WireHeader header = PushHeader(0, vw, 0);
    header.sender = WorkerPeer(vw);
    std::vector<float> gradient(2 * kSegment, 0.0f);
    gradient.back() = mean * kTokens;
    Deliver(header, std::move(gradient));
  };
  PullFor(0, 0, 0);
  PullFor(0, 1, 0);
  push(0, 1.0f);
  push(1, 1e25f);  // its square overflows FP32
  EXPECT_EQ(shard_.version(0), 2u);
  EXPECT_EQ(shard_.version(1), 2u);
  EXPECT_EQ(shard_.weights(1)[kSegment - 1], -1.0f);
  EXPECT_EQ(records_.back().flags, OrderRecord::kSkipped);
  EXPECT_EQ(records_[records_.size() - 2].flags, 0u) << "the other segment's is finite";
  ASSERT_FALSE(notices_.empty());
}

}  // namespace
}  // namespace tug
