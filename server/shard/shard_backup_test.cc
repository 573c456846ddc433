// SPDX-License-Identifier: Apache-2.0
// Clocks that close without the last pushes.
#include <gtest/gtest.h>

#include <cmath>

#include "server/shard/shard.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

constexpr uint64_t kTokens = 50;  // tokens of ShardTest's pushes

ShardOptions BackupOptions(ShardOptions options) {
  options.virtual_workers = 4;
  options.optimizer.set_algorithm(OptimizerConfig::SGD);
  options.optimizer.set_schedule(OptimizerConfig::CONSTANT);
  options.optimizer.set_learning_rate(1);
  options.sync.set_policy(SyncConfig::BACKUP);
  options.sync.set_backups(1);
  return options;
}

class BackupShardTest : public ShardTest {
 protected:
  explicit BackupShardTest(
      const ShardOptions& options = BackupOptions(Options(OptimizerConfig::OFF)))
      : ShardTest(options) {}

  void PushMean(uint32_t block, uint32_t virtual_worker, uint64_t clock, float mean) {
    Push(block, virtual_worker, clock, mean * kTokens);
  }
};

TEST_F(BackupShardTest, ClosesWithoutTheLastOneAndDropsIt) {
  for (const uint32_t vw : {3u, 0u, 2u}) PushMean(0, vw, 0, static_cast<float>(1 + vw));
  EXPECT_EQ(Count(MessageKind::kCommitted), 3u);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_FLOAT_EQ(shard_.weights(0)[0], -(4.0f + 1.0f + 3.0f) / 3);
  PushMean(0, 1, 0, 100.0f);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDropped);
  EXPECT_EQ(sent_.back().header.virtual_worker, 1u);
  EXPECT_EQ(shard_.counters().dropped_pushes, 1u);
  EXPECT_FLOAT_EQ(shard_.weights(0)[0], -(4.0f + 1.0f + 3.0f) / 3);
}

TEST_F(BackupShardTest, TellsARepeatFromWhatCameTooLate) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (const uint32_t vw : {0u, 1u, 2u, 3u}) {
      if (vw != clock) PushMean(0, vw, clock, 1.0f);
    }
  }
  EXPECT_EQ(shard_.version(0), 3u);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (const uint32_t vw : {0u, 1u, 2u, 3u}) {
      PushMean(0, vw, clock, 1.0f);
      EXPECT_EQ(sent_.back().header.kind,
                vw == clock ? MessageKind::kDropped : MessageKind::kCommitted);
    }
  }
  EXPECT_EQ(shard_.version(0), 3u);
}

TEST_F(BackupShardTest, ServesTheNewestToWhoWasDropped) {
  for (uint64_t clock = 0; clock < 2; ++clock) {
    for (const uint32_t vw : {0u, 1u, 2u}) PushMean(0, vw, clock, 1.0f);
  }
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.clock = 1;
  pull.want = Want::kAtLeast;
  Deliver(pull);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  EXPECT_EQ(sent_.back().header.version, 2u);
}

TEST_F(BackupShardTest, ClosesWithWhatIsThereWhenTheOthersDie) {
  for (const uint32_t vw : {0u, 1u}) PushMean(0, vw, 0, 2.0f);
  EXPECT_EQ(shard_.version(0), 0u);
  shard_.SetView(5, LiveSet(std::vector<bool>{true, true, true, false}), now_);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_FLOAT_EQ(shard_.weights(0)[0], -2.0f);
}

class ClippedBackupTest : public BackupShardTest {
 protected:
  ClippedBackupTest() : BackupShardTest(BackupOptions(Options(OptimizerConfig::PER_BLOCK))) {}
};

// The other lane's sum of the block contains other pushes.
TEST_F(ClippedBackupTest, ClipsMeansOverPushesPresentInEachSegment) {
  for (const uint32_t vw : {0u, 1u, 2u}) PushMean(0, vw, 0, 3.0f);
  ASSERT_EQ(Count(MessageKind::kNorms), 1u);
  for (const Outgoing& message : sent_) {
    if (message.header.kind != MessageKind::kNorms) continue;
    ASSERT_EQ(message.payload.size_bytes(), 2 * sizeof(NormEntry));
  }
  PushMean(0, 3, 0, 3.0f);  // its sum is complete, and waits for norms
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDropped);
  const double others = 7.0 * kSegment;  // sum of squares of the other lane's mean
  const auto norms =
      std::make_shared<std::vector<NormEntry>>(1, NormEntry{others, NormEntry::kAllFinite, 0});
  WireHeader header = Header(MessageKind::kNorms, 0, LanePeer(kOtherLane));
  shard_.OnMessage({header, Lease(norms, std::as_bytes(std::span(*norms)))}, now_);
  EXPECT_EQ(shard_.version(0), 1u);
  const double norm = std::sqrt(2 * 9.0 * kSegment + others);
  EXPECT_NEAR(shard_.weights(0)[0], -3.0 / norm, 1e-6);
}

class CrampedBackupTest : public BackupShardTest {
 protected:
  CrampedBackupTest()
      : BackupShardTest([] {
          ShardOptions options = BackupOptions(Options(OptimizerConfig::OFF));
          options.parking_bytes = 0;
          return options;
        }()) {}
};

// Block 1, the last one, becomes exempt first.
TEST_F(CrampedBackupTest, DoesNotKeepRoomForTheStragglerAlone) {
  // Virtual worker 0 is late; the others need a second node each.
  PushMean(1, 1, 0, 1.0f);
  PushMean(1, 2, 0, 1.0f);
  PushMean(1, 3, 0, 1.0f);
  EXPECT_EQ(shard_.version(3), 1u);
}

TEST_F(CrampedBackupTest, TellsSendersOfDeferredPushesThatTheirClockHasClosed) {
  PushMean(1, 3, 0, 1.0f);
  PushMean(0, 3, 0, 1.0f);
  PushMean(0, 1, 0, 1.0f);  // not in the exempt segments: deferred
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDeferred);
  PushMean(0, 2, 0, 1.0f);  // merges with 3
  for (const uint32_t vw : {0u, 1u}) PushMean(1, vw, 0, 1.0f);
  EXPECT_EQ(shard_.version(3), 1u);
  EXPECT_EQ(Count(MessageKind::kPushWanted), 1u);  // block 0 is exempt now
  PushMean(0, 0, 0, 1.0f);                         // but virtual worker 0 is faster
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDropped);
  EXPECT_EQ(sent_.back().header.virtual_worker, 1u);
}

}  // namespace
}  // namespace tug
