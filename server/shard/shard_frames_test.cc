// SPDX-License-Identifier: Apache-2.0
// Pushes with encoded segments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kSegmentsOfBlock = 3;
constexpr float kTokens = 50;  // tokens of ShardTest's pushes
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// SGD with step size 1, on a lane that owns all segments.
ShardOptions PlainOptions(ShardOptions options) {
  options.optimizer.set_algorithm(OptimizerConfig::SGD);
  options.optimizer.set_schedule(OptimizerConfig::CONSTANT);
  options.optimizer.set_learning_rate(1);
  options.optimizer.set_clip_norm(1e9);
  options.lane_of_segment.assign(2 * kSegmentsOfBlock, kLane);
  return options;
}

ShardOptions AspOptions(ShardOptions options) {
  options = PlainOptions(std::move(options));
  options.sync.set_policy(SyncConfig::ASP);
  options.sync.set_staleness_scaling(SyncConfig::NONE);
  return options;
}

class FramesShardTest : public ShardTest {
 protected:
  explicit FramesShardTest(
      const ShardOptions& options = PlainOptions(Options(OptimizerConfig::OFF)))
      : ShardTest(options) {}

  static WireHeader BlockHeader(uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    WireHeader header = PushHeader(block, virtual_worker, clock);
    header.segment_count = kSegmentsOfBlock;
    return header;
  }
  static std::vector<float> Block(float value) {
    return std::vector<float>(kSegmentsOfBlock * kSegment, value);
  }
  void PushBytes(std::vector<std::byte> payload, Codec codec = Codec::kFrames) {
    WireHeader header = BlockHeader(0, 0, 0);
    header.codec = codec;
    shard_.OnMessage({header, LeaseOf(std::move(payload))}, now_);
  }
  float Weight(uint32_t segment) { return shard_.weights(segment).back(); }
};

TEST_F(FramesShardTest, AddsUpFramesOfAnyCodecWhereverTheyLie) {
  uint64_t clock = 0;
  float expected = 0;
  for (const Home first : {Home::kReceiver, Home::kSender}) {
    for (const Home second : {Home::kReceiver, Home::kSender}) {
      DeliverFrames(BlockHeader(0, 1, clock), Block(3), {kFp32Frame, kBf16Frame}, first);
      EXPECT_EQ(sent_.back().header.kind, MessageKind::kReceived);
      DeliverFrames(BlockHeader(0, 0, clock), Block(5), {kBf16Frame, kBf16Frame, kFp32Frame},
                    second);
      EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
      expected -= (3 + 5) / (2 * kTokens);
      ++clock;
      for (uint32_t id = 0; id < kSegmentsOfBlock; ++id) {
        EXPECT_EQ(shard_.version(id), clock);
        EXPECT_FLOAT_EQ(Weight(id), expected);
      }
    }
  }
  DeliverFrames(BlockHeader(0, 0, clock), Block(3), {kBf16Frame});
  Deliver(BlockHeader(0, 1, clock), Block(5));  // FP32
  EXPECT_FLOAT_EQ(Weight(0), expected - (3 + 5) / (2 * kTokens));
  EXPECT_TRUE(notices_.empty());
}

TEST_F(FramesShardTest, LeavesAnEncodedPushWhereItLiesUntilItsSiblingComes) {
  DeliverFrames(BlockHeader(0, 1, 0), Block(3), {kBf16Frame}, Home::kSender);
  EXPECT_EQ(shard_.held_bytes(), 0u);
  DeliverFrames(BlockHeader(0, 1, 0), Block(3), {kBf16Frame}, Home::kSender);
  EXPECT_EQ(shard_.counters().repeats, 1u);
}

TEST_F(FramesShardTest, DropsPayloadsThatAreNotAFrameForEachSegment) {
  const std::vector<std::byte> good =
      EncodeFrames(Block(1), kSegment, {kBf16Frame, kFp32Frame, kBf16Frame});
  const auto with = [&](const std::function<void(std::vector<std::byte>&)>& change) {
    std::vector<std::byte> payload = good;
    change(payload);
    return payload;
  };
  const std::vector<std::vector<std::byte>> bad = {
      {},
      with([](auto& p) { p.resize(p.size() - 8); }),
      with([](auto& p) { p.resize(p.size() - 1); }),
      with([](auto& p) { p.resize(p.size() + 8); }),
      with([](auto& p) { p[4] = std::byte{200}; }),           // no such codec
      with([](auto& p) { p[5] = std::byte{2}; }),             // neither finite nor not
      with([](auto& p) { p[5] = std::byte{1}; }),             // not finite, with bytes
      with([](auto& p) { p[6] = std::byte{1}; }),             // reserved
      with([](auto& p) { std::memset(p.data(), 0xff, 4); }),  // size beyond the payload
      with([](auto& p) { std::memset(p.data(), 0, 4); }),     // empty, but finite
      EncodeFrames(Block(1), kSegment * 2, {kFp32Frame}),     // two frames
      EncodeFrames(Block(1), kSegment / 2, {kFp32Frame}),     // half the size
      EncodeFrames(std::vector<float>(4 * kSegment), kSegment, {kBf16Frame}),  // one frame too many
  };
  uint64_t malformed = 0;
  for (const std::vector<std::byte>& payload : bad) {
    PushBytes(payload);
    EXPECT_EQ(shard_.counters().malformed, ++malformed);
  }
  // Codecs that are invalid for pushes.
  PushBytes(std::vector<std::byte>(kSegmentsOfBlock * kSegment * sizeof(uint16_t)), Codec::kBf16);
  PushBytes(good, Codec::kInt8);
  EXPECT_EQ(shard_.counters().malformed, malformed + 2);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(shard_.held_bytes(), 0u);
  PushBytes(good);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kReceived);
}

// Frame headers are copied on arrival; contents are read later.
TEST_F(FramesShardTest, OutlivesASenderThatWritesToItsMemoryMeanwhile) {
  const auto push_and_overwrite = [&](uint64_t clock, bool headers_only) {
    const std::vector<std::byte> frames = EncodeFrames(Block(2), kSegment, {kBf16Frame});
    const auto shared = std::make_shared<std::vector<std::byte>>(frames);
    WireHeader header = BlockHeader(0, 0, clock);
    header.codec = Codec::kFrames;
    shard_.OnMessage({header, Lease(shared, std::span<const std::byte>(*shared)), Home::kSender},
                     now_);
    const size_t frame = shared->size() / kSegmentsOfBlock;
    for (size_t at = 0; at < shared->size(); at += frame) {
      const size_t bytes = headers_only ? kFrameHeaderBytes : frame;
      std::fill_n(shared->begin() + static_cast<ptrdiff_t>(at), bytes, std::byte{0xff});
    }
    Deliver(BlockHeader(0, 1, clock), Block(4));
    EXPECT_EQ(shard_.version(0), clock + 1);
  };
  push_and_overwrite(0, /*headers_only=*/true);
  EXPECT_FLOAT_EQ(Weight(0), -(2 + 4) / (2 * kTokens));
  EXPECT_TRUE(notices_.empty());
  push_and_overwrite(1, /*headers_only=*/false);  // all NaN
  EXPECT_FLOAT_EQ(Weight(0), -(2 + 4) / (2 * kTokens));
  ASSERT_FALSE(notices_.empty());
  EXPECT_NE(notices_.back().text.find("from virtual worker 0"), std::string::npos);
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

// A frame that cannot be decoded counts as not finite.
TEST_F(FramesShardTest, SkipsAnUpdateOfWhatCannotBeDecoded) {
  std::vector<std::byte> payload = EncodeFrames(Block(1), kSegment, {kBf16Frame});
  const size_t frame = payload.size() / kSegmentsOfBlock;
  const uint32_t two_elements_less = 2 * kSegment - 8;
  std::memcpy(payload.data(), &two_elements_less, sizeof(two_elements_less));
  payload.erase(payload.begin() + static_cast<ptrdiff_t>(frame - 8),
                payload.begin() + static_cast<ptrdiff_t>(frame));
  Deliver(BlockHeader(0, 1, 0), Block(4));
  PushBytes(std::move(payload));
  EXPECT_EQ(shard_.counters().malformed, 0u);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(Weight(0), 0.0f);
  EXPECT_FLOAT_EQ(Weight(1), -(1 + 4) / (2 * kTokens));
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].text.find("from virtual worker 0"), std::string::npos);
}

class ClippedFramesTest : public FramesShardTest,
                          public testing::WithParamInterface<OptimizerConfig::Clip> {
 protected:
  ClippedFramesTest() : FramesShardTest(PlainOptions(Options(GetParam()))) {}
};

TEST_P(ClippedFramesTest, SkipWhatTheClippingIsOverAndNameTheVirtualWorker) {
  std::vector<float> bad = Block(4);
  bad[kSegment + 17] = kInfinity;  // in segment 1
  DeliverFrames(BlockHeader(0, 1, 0), bad, {kBf16Frame});
  DeliverFrames(BlockHeader(0, 0, 0), Block(2), {kBf16Frame, kBf16Frame, kFp32Frame});
  for (const uint32_t vw : {0u, 1u}) DeliverFrames(BlockHeader(1, vw, 0), Block(3), {kBf16Frame});
  const float block_0 = -(4 + 2) / (2 * kTokens);
  const float block_1 = -(3 + 3) / (2 * kTokens);
  for (uint32_t id = 0; id < 2 * kSegmentsOfBlock; ++id) EXPECT_EQ(shard_.version(id), 1u);
  EXPECT_EQ(Weight(1), 0.0f);
  EXPECT_FLOAT_EQ(Weight(0), GetParam() == OptimizerConfig::OFF ? block_0 : 0.0f);
  EXPECT_FLOAT_EQ(Weight(2), GetParam() == OptimizerConfig::OFF ? block_0 : 0.0f);
  EXPECT_FLOAT_EQ(Weight(3), GetParam() == OptimizerConfig::GLOBAL ? 0.0f : block_1);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].text.find("step 1: the gradient of block first from virtual worker 1"),
            std::string::npos)
      << notices_[0].text;
}

INSTANTIATE_TEST_SUITE_P(All, ClippedFramesTest,
                         testing::Values(OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK,
                                         OptimizerConfig::GLOBAL));

class FramesUpdateTest : public FramesShardTest {
 protected:
  FramesUpdateTest() : FramesShardTest(AspOptions(Options(OptimizerConfig::OFF))) {}
};

TEST_F(FramesUpdateTest, MakesAVersionOfEveryPushAtOnce) {
  float expected = 0;
  uint64_t version = 0;
  for (const Home home : {Home::kReceiver, Home::kSender}) {
    for (const uint32_t vw : {0u, 1u}) {
      DeliverFrames(BlockHeader(0, vw, version / 2), Block(3), {kBf16Frame, kFp32Frame}, home);
      EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
      ++version;
      expected -= 3 / kTokens;
      for (uint32_t id = 0; id < kSegmentsOfBlock; ++id) {
        EXPECT_EQ(shard_.version(id), version);
        EXPECT_FLOAT_EQ(Weight(id), expected);
      }
    }
  }
}

TEST_F(FramesUpdateTest, SkipsWhatIsNotFiniteAndNamesTheVirtualWorker) {
  std::vector<float> bad = Block(4);
  bad[kSegment + 17] = kInfinity;
  DeliverFrames(BlockHeader(0, 1, 0), bad, {kBf16Frame});
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(shard_.version(1), 1u);
  EXPECT_EQ(Weight(1), 0.0f);
  EXPECT_FLOAT_EQ(Weight(0), -4 / kTokens);
  EXPECT_EQ(records_[0].flags & OrderRecord::kSkipped, 0u);
  EXPECT_EQ(records_[1].flags & OrderRecord::kSkipped, OrderRecord::kSkipped);
  EXPECT_NE(notices_.back().text.find("from virtual worker 1"), std::string::npos);
}

TEST_F(FramesUpdateTest, DropsMalformedPayloads) {
  PushBytes(std::vector<std::byte>(80));
  EXPECT_EQ(shard_.counters().malformed, 1u);
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace tug
