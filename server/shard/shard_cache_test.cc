// SPDX-License-Identifier: Apache-2.0
// Pulls of weights that a lane caches for its host (weight_cache.h), and pulls sent by lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

constexpr PeerId kNeighbour = WorkerPeer(8);  // a second worker

// The lane caches the other lane's segment, the last one of each block.
class ShardCacheTest : public ShardTest {
 protected:
  ShardCacheTest() : ShardTest(CacheOptions()) {}
  static ShardOptions CacheOptions() {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.cached_lanes = {kOtherLane};
    return options;
  }

  static WireHeader CachedPull(uint64_t version, PeerId sender = kWorker, uint32_t block = 0) {
    WireHeader header = Header(MessageKind::kPull, block, sender);
    header.first_segment = 2;
    header.segment_count = 1;
    header.clock = version;
    return header;
  }
  // The owner answers the last pull.
  void Answer(uint64_t version, float value, uint64_t number = 0, uint32_t block = 0) {
    WireHeader header = CachedPull(version, LanePeer(kOtherLane), block);
    header.kind = MessageKind::kWeights;
    header.version = version;
    header.ack_id = number;
    Deliver(header, std::vector<float>(kSegment, value));
  }
  // The owner refuses: it has only `version`.
  void Refuse(uint64_t version) {
    WireHeader header = CachedPull(version, LanePeer(kOtherLane));
    header.kind = MessageKind::kRefused;
    header.version = version;
    Deliver(header);
  }
  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }
  // Messages of this kind to this peer.
  std::vector<Outgoing> SentTo(PeerId to, MessageKind kind) {
    std::vector<Outgoing> found;
    for (const Outgoing& message : sent_) {
      if (message.to == to && message.header.kind == kind) found.push_back(message);
    }
    return found;
  }
};

TEST_F(ShardCacheTest, AsksTheOwnerOnceAndAnswersAllWorkersOfItsHost) {
  shares_memory_ = true;
  Deliver(CachedPull(1, kWorker));
  Deliver(CachedPull(1, kNeighbour));
  Deliver(CachedPull(1, kWorker));  // a repeat
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].to, LanePeer(kOtherLane));
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kPull);
  EXPECT_EQ(shard_.counters().repeats, 1u);
  sent_.clear();
  Answer(1, 7.0f, /*number=*/77);
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(SentTo(LanePeer(kOtherLane), MessageKind::kWeightsReceived).size(), 1u);
  const std::vector<Outgoing> one = SentTo(kWorker, MessageKind::kWeights);
  const std::vector<Outgoing> other = SentTo(kNeighbour, MessageKind::kWeights);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(one[0].header.version, 1u);
  EXPECT_EQ(one[0].header.first_segment, 2u);
  EXPECT_EQ(one[0].header.ack_id, 0u) << "read in place, it holds no credit";
  EXPECT_EQ(one[0].payload.floats()[kSegment - 1], 7.0f);
  EXPECT_EQ(one[0].payload.bytes().data(), other[0].payload.bytes().data()) << "no copy";
  sent_.clear();
  Deliver(CachedPull(1, kWorker));  // before the backward pass
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeights);
  EXPECT_EQ(shard_.peak_cached_bytes(), kSegment * sizeof(float));
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

TEST_F(ShardCacheTest, WithoutSharedMemoryAnswersHoldTheWorkersCredit) {
  Deliver(CachedPull(1));
  Answer(1, 7.0f);
  const std::vector<Outgoing> answers = SentTo(kWorker, MessageKind::kWeights);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_NE(answers[0].header.ack_id, 0u);
  EXPECT_EQ(shard_.counters().peak_answer_bytes, kSegment * sizeof(float));
}

TEST_F(ShardCacheTest, AnswersWhoWantsAnotherVersionWhenThatHasCome) {
  shares_memory_ = true;
  Deliver(CachedPull(1, kWorker));
  Deliver(CachedPull(2, kNeighbour));
  EXPECT_EQ(SentTo(LanePeer(kOtherLane), MessageKind::kPull).size(), 2u);
  Answer(1, 7.0f);
  EXPECT_EQ(SentTo(kWorker, MessageKind::kWeights).size(), 1u);
  EXPECT_TRUE(SentTo(kNeighbour, MessageKind::kWeights).empty());
  Answer(2, 8.0f);
  ASSERT_EQ(SentTo(kNeighbour, MessageKind::kWeights).size(), 1u);
  EXPECT_EQ(SentTo(kNeighbour, MessageKind::kWeights)[0].payload.floats()[0], 8.0f);
}

TEST_F(ShardCacheTest, RefusesWhatTheOwnerRefusesToAllWhoWaitForIt) {
  Deliver(CachedPull(1, kWorker));
  Deliver(CachedPull(1, kNeighbour));
  Deliver(CachedPull(2, WorkerPeer(9)));
  sent_.clear();
  Refuse(2);
  for (const PeerId worker : {kWorker, kNeighbour}) {
    const std::vector<Outgoing> refused = SentTo(worker, MessageKind::kRefused);
    ASSERT_EQ(refused.size(), 1u);
    EXPECT_EQ(refused[0].header.version, 2u);
    EXPECT_EQ(refused[0].header.first_segment, 2u);
  }
  EXPECT_EQ(sent_.size(), 2u);
  sent_.clear();
  Deliver(CachedPull(1, kWorker));  // again: not counted as a repeat
  EXPECT_EQ(shard_.counters().repeats, 0u);
  EXPECT_EQ(SentTo(LanePeer(kOtherLane), MessageKind::kPull).size(), 1u);
  Answer(2, 7.0f);
  EXPECT_EQ(SentTo(WorkerPeer(9), MessageKind::kWeights).size(), 1u);
}

TEST_F(ShardCacheTest, RefusesWhatIsTwoVersionsOlderThanWhatComes) {
  Deliver(CachedPull(0, kWorker));
  Deliver(CachedPull(1, kNeighbour));
  Deliver(CachedPull(2, WorkerPeer(9)));
  sent_.clear();
  Answer(2, 7.0f);
  EXPECT_EQ(SentTo(kWorker, MessageKind::kRefused).size(), 1u);
  EXPECT_TRUE(SentTo(kNeighbour, MessageKind::kRefused).empty()) << "the owner has that too";
}

// A worker that keeps asking replaces its own waiting pull, and no other worker's.
TEST_F(ShardCacheTest, AWorkerWaitsForOnePullOfASegment) {
  for (int i = 0; i < 100; ++i) Deliver(CachedPull(static_cast<uint64_t>(i % 3), kWorker));
  Deliver(CachedPull(0, kNeighbour));
  EXPECT_EQ(shard_.counters().malformed, 0u);
  sent_.clear();
  for (const uint64_t version : {0u, 1u, 2u}) Answer(version, 7.0f);
  const std::vector<Outgoing> answers = SentTo(kWorker, MessageKind::kWeights);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.version, 0u) << "the last one";
  EXPECT_EQ(SentTo(kNeighbour, MessageKind::kWeights).size(), 1u);
}

TEST_F(ShardCacheTest, ForgetsItAllInANewView) {
  shares_memory_ = true;
  Deliver(CachedPull(1));
  Answer(1, 7.0f);
  sent_.clear();
  shard_.SetView(5, LiveSet(2), now_);
  WireHeader pull = CachedPull(1);
  pull.view = 5;
  Deliver(pull);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].to, LanePeer(kOtherLane));
  EXPECT_EQ(sent_[0].header.view, 5u);
  sent_.clear();
  Answer(1, 7.0f, /*number=*/78);  // of the previous view
  ASSERT_EQ(sent_.size(), 1u) << "the owner's credit returns";
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeightsReceived);
  EXPECT_EQ(sent_[0].header.view, 5u);
}

TEST_F(ShardCacheTest, AnswersLanesThatPullItsOwnSegments) {
  Pull(0, 0, LanePeer(kOtherLane));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].to, LanePeer(kOtherLane));
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeights);
  const uint64_t number = sent_[0].header.ack_id;
  EXPECT_NE(number, 0u);
  WireHeader received = Header(MessageKind::kWeightsReceived, 0, LanePeer(kOtherLane));
  received.segment_count = 0;
  received.ack_id = number;
  Deliver(received);
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

TEST_F(ShardCacheTest, TellsALaneThatPullsInAnotherViewSo) {
  WireHeader pull = Header(MessageKind::kPull, 0, LanePeer(kOtherLane));
  pull.view = 3;
  Deliver(pull);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kRefused);
  EXPECT_EQ(sent_[0].header.view, 4u);
}

TEST_F(ShardCacheTest, DropsPullsThatNobodyMakes) {
  Deliver(CachedPull(1, LanePeer(kOtherLane)));  // lanes ask the owner instead
  WireHeader pull = CachedPull(1);
  pull.first_segment = 1;  // the lane's own segment and the other lane's
  pull.segment_count = 2;
  Deliver(pull);
  pull = CachedPull(1);
  pull.codec = Codec::kInt8;  // the job's pulls are FP32
  Deliver(pull);
  pull = CachedPull(1);
  pull.want = Want::kAtLeast;
  Deliver(pull);
  Deliver(CachedPull(3));  // two versions beyond the lane's next one
  Deliver(CachedPull(uint64_t{1} << 60));
  EXPECT_EQ(shard_.counters().malformed, 6u);
  shard_.OnTick(now_ += absl::Seconds(5));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(ShardTest, WithoutTheCacheLanesPullNothing) {
  Pull(0, 0, LanePeer(kOtherLane));
  WireHeader weights = Header(MessageKind::kWeights, 0, LanePeer(kOtherLane));
  Deliver(weights);
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.first_segment = 2;
  pull.segment_count = 1;
  Deliver(pull);
  EXPECT_EQ(shard_.counters().malformed, 3u);
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace tug
