// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "blocks/runs.h"
#include "server/shard/shard_test_support.h"
#include "server/sums/norm_ledger.h"

namespace tug {
namespace {

TEST_F(ShardTest, ClosesClockAndAnswersPullOnceAllVirtualWorkersPushed) {
  Push(0, 1, 0);
  EXPECT_EQ(Count(MessageKind::kReceived), 1u);
  Pull(0, 1);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  Push(0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kReceived),
            1u);  // the second push is committed at once, without kReceived
  EXPECT_EQ(Count(MessageKind::kCommitted), 2u);
  ASSERT_EQ(Count(MessageKind::kWeights), 1u);
  EXPECT_EQ(sent_.back().header.version, 1u);
  EXPECT_EQ(sent_.back().payload.size_bytes(), 2 * kSegment * sizeof(float));
  EXPECT_LT(sent_.back().payload.floats()[0], 0.0f);  // a step against the gradient, from 0
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.version(3), 0u);
}

TEST_F(ShardTest, AcknowledgesARepeatWithoutApplyingIt) {
  Push(0, 0, 0);
  Push(0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kReceived), 2u);
  EXPECT_EQ(shard_.version(0), 0u);
  Push(0, 1, 0);
  EXPECT_EQ(shard_.version(0), 1u);
  Push(0, 0, 0);  // committed before
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(sent_.back().header.version, 1u);
  EXPECT_EQ(shard_.counters().repeats, 2u);
}

// The lane already has the push: without an answer its sender would wait forever.
TEST_F(ShardTest, AnswersRepeatedPushWithAnyPayload) {
  Push(0, 0, 0);
  WireHeader header = PushHeader(0, 0, 0);
  header.codec = Codec::kFrames;
  Deliver(header);
  EXPECT_EQ(Count(MessageKind::kReceived), 2u);
  Push(0, 1, 0);
  Deliver(header);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(Count(MessageKind::kCommitted), 3u);
  EXPECT_EQ(shard_.counters().malformed, 0u);
  EXPECT_EQ(shard_.version(0), 1u);
}

TEST_F(ShardTest, RefusesAnOlderViewRetriablyAndSaysTheCurrentOne) {
  WireHeader header = PushHeader(0, 0, 0);
  header.view = 3;
  Deliver(header, std::vector<float>(2 * kSegment));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kRefused);
  EXPECT_EQ(sent_[0].header.view, 4u);
  EXPECT_EQ(shard_.counters().refused, 1u);
  header = PushHeader(0, 0, 0);
  header.timeline = 0;
  Deliver(header, std::vector<float>(2 * kSegment));
  EXPECT_EQ(shard_.counters().refused, 2u);
}

TEST_F(ShardTest, CountsAndDropsWhatMakesNoSense) {
  const std::vector<float> right(2 * kSegment);
  uint64_t bad = 0;
  const auto expect_dropped = [&](WireHeader header, const std::vector<float>& payload) {
    Deliver(header, payload);
    EXPECT_EQ(shard_.counters().malformed, ++bad);
    EXPECT_TRUE(sent_.empty());
  };
  WireHeader header = PushHeader(0, 0, 0);
  expect_dropped(header, std::vector<float>(2 * kSegment - 1));  // short payload
  header.block = 2;
  expect_dropped(header, right);  // no such block
  header = PushHeader(0, 0, 0);
  header.first_segment = 1;
  expect_dropped(header, right);  // overlaps the other lane's segment
  header.first_segment = 0xffffffffu;
  expect_dropped(header, right);
  header = PushHeader(0, 0, 0);
  header.segment_count = 0;
  expect_dropped(header, {});
  header = PushHeader(0, 2, 0);
  expect_dropped(header, right);  // no such virtual worker
  header = PushHeader(0, 0, 0);
  header.virtual_worker_count = 3;
  expect_dropped(header, right);
  expect_dropped(PushHeader(0, 0, 5), right);  // no virtual worker can have reached this clock
  header = PushHeader(0, 0, 0);
  header.token_count = 0;
  expect_dropped(header, right);
  header = PushHeader(0, 0, 0);
  header.job = 8;
  expect_dropped(header, right);  // another job
  header = PushHeader(0, 0, 0);
  header.sender = LanePeer(kOtherLane);
  expect_dropped(header, right);  // lanes do not push
  header = Header(MessageKind::kPull, 0);
  header.clock = 2;
  expect_dropped(header, {});  // two updates ahead
  expect_dropped(Header(MessageKind::kWeights, 0), right);
  expect_dropped(Header(MessageKind::kNorms, 0, LanePeer(kOtherLane)), right);  // clip: OFF
}

TEST_F(ShardTest, RemembersNoMorePushesAndPullsThanVirtualWorkersCanHaveOpen) {
  constexpr uint32_t kSenders = 100;  // more than 2 x 2 virtual workers x 3 segments
  for (uint32_t sender = 0; sender < kSenders; ++sender) {
    WireHeader header = PushHeader(0, 0, 0);
    header.sender = WorkerPeer(sender);
    Deliver(header, std::vector<float>(2 * kSegment, 1.0f));
    Pull(0, 1, WorkerPeer(sender));
  }
  EXPECT_EQ(Count(MessageKind::kReceived), 12u);
  EXPECT_EQ(shard_.counters().malformed, 2 * (kSenders - 12u));
  sent_.clear();
  Push(0, 1, 0);
  EXPECT_EQ(Count(MessageKind::kCommitted), 0u);  // refused, too: the block is full
}

TEST_F(ShardTest, SurvivesRandomHeaders) {
  std::mt19937 random(20261121);
  for (int i = 0; i < 20000; ++i) {
    WireHeader header;
    header.kind = static_cast<MessageKind>(1 + random() % 11);
    header.codec = static_cast<Codec>(random() % 3);
    header.job = random() % 8 == 0 ? random() : 9;
    header.timeline = 1;
    header.view = 4;
    header.block = random() % 4 == 0 ? random() : random() % 3;
    header.first_segment = random() % 4 == 0 ? random() : random() % 4;
    header.segment_count = random() % 4 == 0 ? random() : random() % 4;
    header.virtual_worker = random() % 4 == 0 ? random() : random() % 3;
    header.virtual_worker_count = static_cast<uint16_t>(random() % 4);
    header.clock = random() % 3;
    header.version = random() % 3;
    header.want = static_cast<Want>(random() % 2);
    header.token_count = random() % 3;
    header.ack_id = random() % 3;
    header.sender = random() % 2 == 0 ? kWorker : LanePeer(kOtherLane);
    Deliver(header, std::vector<float>(random() % 4 * kSegment));
    sent_.clear();
  }
}

TEST_F(ShardTest, TakesASnapshotOfTheStartWhenAsked) {
  shard_.SnapshotStart();
  EXPECT_EQ(snapshots_, shard_.segments());
}

TEST_F(ShardTest, TakesSnapshotsAtTheIntervalAndAtTheFinalVersionOnce) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  EXPECT_EQ(snapshots_, (std::vector<uint32_t>{0, 1}));  // version 2
  shard_.SetFinalVersion(3);
  EXPECT_EQ(snapshots_, (std::vector<uint32_t>{0, 1, 0, 1}));
  shard_.SetFinalVersion(3);
  EXPECT_EQ(snapshots_.size(), 4u);
}

TEST_F(ShardTest, TakesRunsForADensePushWithZeros) {
  const ElementRuns runs = {{10, 20}, {kSegment - 3, kSegment + 5}};
  std::vector<float> dense(2 * kSegment);
  for (const ElementRun& run : runs) {
    for (uint32_t e = run.begin; e < run.end; ++e) dense[e] = 0.25f * static_cast<float>(e);
  }
  const auto payload = std::make_shared<std::vector<std::byte>>(EncodedBytes(runs, true));
  EncodeRuns(runs, dense, *payload);
  WireHeader header = PushHeader(0, 0, 0);
  header.codec = Codec::kRuns;
  shard_.OnMessage({header, Lease(payload, std::span<const std::byte>(*payload))}, now_);
  Push(0, 1, 0);
  Deliver(PushHeader(1, 0, 0), dense);
  Push(1, 1, 0);
  ASSERT_EQ(shard_.version(0), 1u);
  ASSERT_EQ(shard_.version(3), 1u);
  for (uint32_t id : {0u, 1u}) {
    EXPECT_TRUE(std::equal(shard_.weights(id).begin(), shard_.weights(id).end(),
                           shard_.weights(id + 3).begin()));
  }
  header.clock = 1;  // one byte short
  shard_.OnMessage(
      {header, Lease(payload, std::span<const std::byte>(*payload).first(payload->size() - 1))},
      now_);
  EXPECT_EQ(shard_.counters().malformed, 1u);
}

class GlobalClipShardTest : public ShardTest {
 protected:
  GlobalClipShardTest() : ShardTest(OptimizerConfig::GLOBAL) {}

  void NormsFromOtherLane(uint64_t clock, double sum_of_squares) {
    const std::vector<NormEntry> entries(2, {sum_of_squares, NormEntry::kAllFinite, 0});
    WireHeader header = Header(MessageKind::kNorms, NormLedger::kAllBlocks, LanePeer(kOtherLane));
    header.clock = clock;
    auto owner = std::make_shared<std::vector<NormEntry>>(entries);
    shard_.OnMessage({header, Lease(owner, std::as_bytes(std::span(*owner)))}, now_);
  }
};

TEST_F(GlobalClipShardTest, ClosesNothingBeforeEveryLanesNormsAreIn) {
  for (uint32_t block : {0u, 1u}) {
    for (uint32_t vw : {0u, 1u}) Push(block, vw, 0);
  }
  EXPECT_EQ(Count(MessageKind::kCommitted), 0u);
  EXPECT_EQ(Count(MessageKind::kNorms), 1u);
  NormsFromOtherLane(0, 1.0);
  EXPECT_EQ(Count(MessageKind::kCommitted), 4u);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.version(4), 1u);
}

TEST_F(GlobalClipShardTest, AsksAgainForNormsThatDoNotComeAndAnswersWhoAsks) {
  for (uint32_t block : {0u, 1u}) {
    for (uint32_t vw : {0u, 1u}) Push(block, vw, 0);
  }
  shard_.OnTick(now_ + absl::Milliseconds(999));
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 0u);
  shard_.OnTick(now_ + absl::Seconds(1));
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 1u);
  NormsFromOtherLane(0, 1.0);
  WireHeader wanted =
      Header(MessageKind::kNormsWanted, NormLedger::kAllBlocks, LanePeer(kOtherLane));
  Deliver(wanted);  // for the clock before the open one
  EXPECT_EQ(Count(MessageKind::kNorms), 2u);
  EXPECT_EQ(sent_.back().header.clock, 0u);
}

TEST_F(GlobalClipShardTest, SkipsTheWholeUpdateAndNamesBlockAndVirtualWorker) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Push(1, 0, 0);
  Push(1, 1, 0, std::numeric_limits<float>::infinity());
  NormsFromOtherLane(0, 1.0);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.weights(0)[0], 0.0f);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].text.find("block second from virtual worker 1"), std::string::npos)
      << notices_[0].text;
}

class LocalStepsTest : public ShardTest {
 protected:
  LocalStepsTest()
      : ShardTest([] {
          ShardOptions options = Options(OptimizerConfig::GLOBAL);
          options.sync.set_policy(SyncConfig::BSP);
          options.sync.set_local_steps(4);
          options.sync.mutable_outer()->set_learning_rate(0.5);
          options.sync.mutable_outer()->set_momentum(0.5);
          options.sync.mutable_outer()->set_nesterov(true);
          return options;
        }()) {}
};

// Workers clip gradients: lanes exchange no norms, so the other lane's are not needed.
TEST_F(LocalStepsTest, AppliesTheMeanOfTheDifferencesByTheOuterOptimizer) {
  EXPECT_TRUE(shard_.v(0).empty());
  for (const uint32_t vw : {0u, 1u}) {
    WireHeader header = PushHeader(0, vw, 0);
    header.token_count = 1;
    Deliver(header, std::vector<float>(2 * kSegment, vw == 0 ? 2.0f : 4.0f));
  }
  EXPECT_EQ(Count(MessageKind::kNorms), 0u);
  EXPECT_FLOAT_EQ(shard_.weights(0)[0], -0.5f * (3.0f + 0.5f * 3.0f));
}

}  // namespace
}  // namespace tug
