// SPDX-License-Identifier: Apache-2.0
// Pushes that are updates by themselves.
#include <gtest/gtest.h>

#include <limits>

#include "server/shard/shard.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

TEST_F(UpdateShardTest, MakesAVersionOfEveryPushAtOnce) {
  PushMean(0, 1, 0, 0, 2.0f);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.version(1), 1u);
  EXPECT_EQ(shard_.version(3), 0u);
  EXPECT_FLOAT_EQ(Weight(1), -2.0f);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kCommitted);
  EXPECT_EQ(sent_[0].header.version, 1u);
  PushMean(0, 0, 0, 0);
  EXPECT_FLOAT_EQ(Weight(1), -3.0f);
  EXPECT_EQ(shard_.counters().updates, 4u);
  EXPECT_EQ(shard_.counters().staleness[0], 2u);
  EXPECT_EQ(shard_.counters().staleness[1], 2u);
}

TEST_F(UpdateShardTest, CommitsRepeatedPushWithAnyPayload) {
  PushMean(0, 1, 0, 0);
  WireHeader header = PushHeader(0, 1, 0);
  header.codec = Codec::kFrames;
  Deliver(header);
  EXPECT_EQ(Count(MessageKind::kCommitted), 2u);
  EXPECT_EQ(shard_.counters().malformed, 0u);
  EXPECT_EQ(shard_.version(0), 1u);
}

TEST_F(UpdateShardTest, CommitsARepeatWithoutApplyingIt) {
  PushMean(0, 1, 0, 0);
  PushMean(0, 1, 0, 0);
  EXPECT_EQ(Count(MessageKind::kCommitted), 2u);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.counters().repeats, 1u);
}

TEST_F(UpdateShardTest, AsksForAnEarlyPushOnceItIsItsTurnAndAgainOnATick) {
  PushMean(0, 1, 1, 0);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDeferred);
  PushMean(1, 1, 0, 0);  // another block
  EXPECT_EQ(Count(MessageKind::kPushWanted), 0u);
  PushMean(0, 1, 0, 0);
  ASSERT_EQ(Count(MessageKind::kPushWanted), 1u);
  EXPECT_EQ(sent_.back().header.clock, 1u);
  EXPECT_EQ(sent_.back().header.block, 0u);
  shard_.OnTick(now_ + absl::Milliseconds(999));
  EXPECT_EQ(Count(MessageKind::kPushWanted), 1u);
  shard_.OnTick(now_ + absl::Seconds(1));
  EXPECT_EQ(Count(MessageKind::kPushWanted), 2u);
  PushMean(0, 1, 1, 0);
  EXPECT_EQ(shard_.version(0), 2u);
  shard_.OnTick(now_ + absl::Seconds(5));
  EXPECT_EQ(Count(MessageKind::kPushWanted), 2u);
}

TEST_F(UpdateShardTest, HoldsAPullUntilTheSlowestIsNearEnoughAndItsOwnPushesAreIn) {
  PullFor(0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
  PullFor(0, 0, 1);  // its own push of clock 0 has not arrived
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
  PushMean(0, 0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 2u);
  EXPECT_EQ(sent_.back().header.version, 1u);
  PushMean(0, 0, 1, 1);
  PullFor(0, 0, 2);  // the other virtual worker is two clocks behind
  EXPECT_EQ(Count(MessageKind::kWeights), 2u);
  PushMean(0, 1, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 3u);
  EXPECT_EQ(sent_.back().header.version, 3u);
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

TEST_F(UpdateShardTest, ServesWeightsThatLaterUpdatesDoNotChange) {
  shares_memory_ = true;
  PullFor(0, 0, 0);
  const Lease served = sent_.back().payload;
  PushMean(0, 0, 0, 0, 3.0f);
  EXPECT_EQ(served.floats()[0], 0.0f);
  EXPECT_EQ(Weight(0), -3.0f);
}

TEST_F(UpdateShardTest, SkipsAnUpdateThatIsNotFiniteAndNamesTheVirtualWorker) {
  PushMean(0, 0, 0, 0, 1.0f);
  PushMean(0, 1, 0, 0, std::numeric_limits<float>::infinity());
  EXPECT_EQ(shard_.version(0), 2u);
  EXPECT_EQ(Weight(0), -1.0f);
  ASSERT_FALSE(notices_.empty());
  const ShardNotice notice = notices_.back();
  const char* const text =
      "step 1: the gradient from virtual worker 1 is not finite; the whole update is skipped";
  EXPECT_NE(notice.text.find(text), std::string::npos) << notice.text;
  PushMean(1, 1, 0, 0, std::numeric_limits<float>::infinity());
  EXPECT_EQ(notices_.back().key, notice.key) << "one step, one line";
  EXPECT_EQ(records_.back().flags & OrderRecord::kSkipped, OrderRecord::kSkipped);
}

// A step does not pull rows that it does not use, and pushes zeros for them.
TEST_F(UpdateShardTest, GradientForAnyVersionCountsAsExactAndNewest) {
  PushMean(0, 1, 0, 0);
  PushMean(0, 0, 0, kAnyWeightsVersion, 0.0f);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(shard_.version(0), 2u);
  EXPECT_EQ(records_.back(), (OrderRecord{.segment = 1,
                                          .virtual_worker = 0,
                                          .clock = 0,
                                          .version = 2,
                                          .weights_version = 1,
                                          .flags = OrderRecord::kUntouched}));
  EXPECT_EQ(shard_.counters().staleness[0], 4u);
}

// Without an answer, its worker and all that wait for it would stall until it repeats the push.
TEST_F(UpdateShardTest, TakesAGradientOfLaterWeightsThanThereAreAsOfTheNewest) {
  PushMean(0, 0, 0, 7);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(shard_.counters().malformed, 0u);
  EXPECT_EQ(shard_.counters().staleness[0], 2u);
  EXPECT_EQ(records_.back().weights_version, 0u);
  EXPECT_EQ(records_.back().flags, OrderRecord::kInexact);
}

TEST_F(UpdateShardTest, DropsWhatMakesNoSense) {
  WireHeader header = PushHeader(0, 0, 0);
  header.virtual_worker_count = 2;  // a sum of two is not an update
  Deliver(header, std::vector<float>(2 * kSegment));
  EXPECT_EQ(shard_.counters().malformed, 1u);
  PullFor(0, 0, 2);  // it has not begun clock 1
  EXPECT_EQ(shard_.counters().malformed, 2u);
  PullFor(0, 2, 0);  // no such virtual worker
  EXPECT_EQ(shard_.counters().malformed, 3u);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(UpdateShardTest, TakesSnapshotsOfStepsOfTheJobAndOneOfTheEnd) {
  // Two virtual workers, snapshots every second step: every four updates.
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (const uint32_t vw : {0u, 1u}) PushMean(0, vw, clock, 0);
  }
  EXPECT_EQ(snapshots_, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(snapshot_versions_, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(snapshot_clocks_[0], (std::vector<uint64_t>{4, 2, 2}));
  const std::vector<uint64_t> final_clocks = {3, 4};
  shard_.SetFinalClocks(final_clocks, 3, now_);
  EXPECT_EQ(snapshots_.size(), 2u);
  PushMean(0, 1, 3, 0);
  EXPECT_EQ(snapshot_versions_, (std::vector<uint64_t>{2, 2, 3, 3}));
  EXPECT_EQ(snapshot_clocks_.back(), (std::vector<uint64_t>{7, 3, 4}));
  EXPECT_FALSE(shard_.finished());  // the other block is not finished
  for (uint64_t clock = 0; clock < 4; ++clock) {
    for (const uint32_t vw : {0u, 1u}) {
      if (clock < final_clocks[vw]) PushMean(1, vw, clock, 0);
    }
  }
  EXPECT_TRUE(shard_.finished());
  EXPECT_EQ(snapshot_versions_.back(), 3u);
  EXPECT_EQ(shard_.Clocks(), final_clocks);
  shard_.SetFinalClocks(final_clocks, 3, now_);
  EXPECT_EQ(snapshots_.size(), 8u);
}

TEST_F(UpdateShardTest, ExactPullsOfAnyClockLeaveRoomForOthers) {
  PushMean(0, 0, 0, 0);
  for (uint64_t clock = 1; clock <= 10'000; ++clock) {
    PullFor(0, 0, 1 + clock, Want::kExact, clock % 2, 1);
  }
  EXPECT_EQ(shard_.counters().malformed, 0u);
  PullFor(0, 1, 1);  // it has not pushed clock 0
  EXPECT_EQ(shard_.counters().malformed, 0u);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  PushMean(0, 1, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
  // The newest two exact pulls are still waiting.
  shard_.SetFinalClocks(std::vector<uint64_t>{1, 1}, 1, now_);
  EXPECT_EQ(Count(MessageKind::kWeights), 3u);
}

TEST_F(UpdateShardTest, PushesOfAbsurdClocksAreNotRemembered) {
  for (uint64_t clock = 2; clock < 100; ++clock) PushMean(0, 0, clock, 0);
  PushMean(0, 0, ~uint64_t{0}, 0);
  EXPECT_EQ(shard_.counters().malformed, 99u);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(UpdateShardTest, AsksNoMoreForAnEarlyPushThatSomebodyElseHasBrought) {
  WireHeader early = PushHeader(0, 1, 1);
  early.sender = WorkerPeer(1);
  Deliver(early, std::vector<float>(2 * kSegment, 1.0f));
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kDeferred);
  PushMean(0, 1, 0, 0);
  EXPECT_EQ(Count(MessageKind::kPushWanted), 1u);
  PushMean(0, 1, 1, 0);
  shard_.OnTick(now_ + absl::Seconds(2));
  EXPECT_EQ(Count(MessageKind::kPushWanted), 1u);
}

TEST_F(UpdateShardTest, TakesNoPushBeyondTheLastClock) {
  PushMean(0, 0, 0, 0);
  PushMean(0, 1, 0, 0);
  shard_.SetFinalClocks(std::vector<uint64_t>{1, 2}, 1, now_);
  PushMean(0, 0, 1, 2);
  PushMean(0, 1, 2, 2);  // early as well
  EXPECT_EQ(shard_.counters().malformed, 2u);
  EXPECT_EQ(shard_.version(0), 2u);
  EXPECT_EQ(sent_.size(), 2u);
  PushMean(0, 0, 0, 0);  // a repeat
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  PushMean(0, 1, 1, 2);
  EXPECT_EQ(shard_.version(0), 3u);
}

TEST_F(UpdateShardTest, AnswersTheLastEvaluationOnceAllPushesAreIn) {
  PushMean(0, 0, 0, 0);
  PullFor(0, 0, 9, Want::kExact);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  shard_.SetFinalClocks(std::vector<uint64_t>{1, 1}, 1, now_);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  PushMean(0, 1, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
  PullFor(0, 0, 9, Want::kExact);
  EXPECT_EQ(Count(MessageKind::kWeights), 2u);
}

TEST_F(UpdateShardTest, GoesOnFromTheClocksOfACheckpoint) {
  for (const uint32_t id : {0u, 1u}) shard_.SetClocks(id, std::vector<uint64_t>{7, 3, 4});
  PushMean(0, 1, 3, 6);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(shard_.version(0), 7u);
  PushMean(0, 1, 4, 6);
  EXPECT_EQ(shard_.version(0), 8u);
  EXPECT_EQ(records_.back().version, 8u);
  EXPECT_EQ(records_.back().weights_version, 6u);
}

TEST_F(UpdateShardTest, NewViewRefusesOldPullsAndSkipsLostWorkers) {
  PushMean(0, 0, 0, 0);
  PushMean(0, 0, 1, 1);
  LiveSet live(std::vector<bool>{true, false});
  shard_.SetView(5, live, now_);
  PullFor(0, 0, 2);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
  PullBy(WorkerPeer(0), 5, 0, 0, 2);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  EXPECT_EQ(sent_.back().header.view, 5u);
}

TEST_F(UpdateShardTest, RecordsUpdateAsExactOnlyIfOneReplyHadWeightsAtOneVersion) {
  const auto push = [&](uint32_t vw, uint64_t clock, uint64_t version, uint32_t first,
                        uint32_t segments) {
    WireHeader header = PushHeader(0, vw, clock);
    header.sender = WorkerPeer(vw);
    header.version = version;
    header.first_segment = first;
    header.segment_count = segments;
    Deliver(header, std::vector<float>(segments * kSegment, 1.0f));
    return records_.back();
  };
  PullFor(0, 0, 0);
  const OrderRecord exact = push(0, 0, 0, 0, 2);
  EXPECT_EQ(exact, (OrderRecord{.segment = 1, .clock = 0, .version = 1, .weights_version = 0}));
  EXPECT_EQ(push(1, 0, 0, 0, 1).flags, OrderRecord::kInexact);  // it was never served
  EXPECT_EQ(notices_.size(), 1u);
  PullFor(0, 0, 1);  // segment 0 is at version 2, segment 1 at 1
  EXPECT_EQ(push(0, 1, 1, 0, 2).flags, OrderRecord::kInexact);
  EXPECT_EQ(push(1, 0, 0, 1, 1).flags, OrderRecord::kInexact);
  PullFor(0, 0, 2, Want::kAtLeast, 0, 1);
  PullFor(0, 0, 2, Want::kAtLeast, 1, 1);
  EXPECT_EQ(push(0, 2, 3, 0, 2).flags, OrderRecord::kInexact);  // served in two answers
  EXPECT_EQ(notices_.size(), 1u);
  EXPECT_EQ(shard_.counters().inexact_records, 6u);
}

class ThreeVirtualWorkersTest : public UpdateShardTest {
 protected:
  ThreeVirtualWorkersTest()
      : UpdateShardTest([] {
          ShardOptions options = SspOptions(Options(OptimizerConfig::OFF));
          options.virtual_workers = 3;
          return options;
        }()) {}
};

// Its sender runs another virtual worker now, whose pushes have arrived: it must not wait for the
// first.
TEST_F(ThreeVirtualWorkersTest, APullForAnotherVirtualWorkerIsNoRepeat) {
  PushMean(0, 1, 0, 0);
  const PeerId sender = WorkerPeer(7);
  PullBy(sender, 4, 0, 0, 1);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  PullBy(sender, 4, 0, 1, 1);
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
  PullBy(sender, 4, 0, 2, 1);
  PushMean(0, 2, 0, 0);
  EXPECT_EQ(Count(MessageKind::kWeights), 2u);
  EXPECT_EQ(sent_.back().header.virtual_worker, 2u);
}

TEST_F(ThreeVirtualWorkersTest, LookAtWaitingPullsAgainWhenAnyButTheFinishedMovesOn) {
  shard_.SetFinalClocks(std::vector<uint64_t>{1, 3, 4}, 2, now_);
  PushMean(0, 0, 0, 0);  // its last push
  PushMean(0, 1, 0, 0);
  for (uint64_t clock = 0; clock < 3; ++clock) PushMean(0, 2, clock, 0);
  PullFor(0, 2, 3);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  PushMean(0, 1, 1, 0);  // 0 is still the slowest
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
}

class ScaledUpdateTest : public UpdateShardTest {
 protected:
  ScaledUpdateTest()
      : UpdateShardTest([] {
          ShardOptions options = SspOptions(Options(OptimizerConfig::OFF));
          options.sync.set_staleness_scaling(SyncConfig::INVERSE);
          return options;
        }()) {}
};

TEST_F(ScaledUpdateTest, StepsTheLessTheStalerItsGradient) {
  PushMean(0, 0, 0, 0);  // staleness 0
  EXPECT_FLOAT_EQ(Weight(0), -1.0f);
  PushMean(0, 1, 0, 0);  // 1
  EXPECT_FLOAT_EQ(Weight(0), -2.0f);
  PushMean(0, 0, 1, 0);  // 2
  EXPECT_FLOAT_EQ(Weight(0), -2.5f);
  PushMean(0, 1, 1, 0);  // 3
  EXPECT_NEAR(Weight(0), -2.5f - 1.0f / 3, 1e-6f);
  EXPECT_EQ(StalenessScale(SyncConfig::INVERSE_SQRT, 4), 0.5f);
  EXPECT_EQ(StalenessScale(SyncConfig::NONE, 4), 1.0f);
}

class ScheduledUpdateTest : public UpdateShardTest {
 protected:
  ScheduledUpdateTest()
      : UpdateShardTest([] {
          ShardOptions options = SspOptions(Options(OptimizerConfig::OFF));
          options.optimizer.set_schedule(OptimizerConfig::LINEAR);
          options.optimizer.set_min_learning_rate(0);
          options.optimizer.set_decay_steps(2);  // four updates
          return options;
        }()) {}
};

TEST_F(ScheduledUpdateTest, GoesThroughTheScheduleByUpdatesOverVirtualWorkers) {
  float before = 0;
  for (uint64_t update = 0; update < 6; ++update) {
    PushMean(0, static_cast<uint32_t>(update % 2), update / 2, update);
    const float rate = update < 4 ? 1.0f - 0.25f * static_cast<float>(update) : 0.0f;
    EXPECT_NEAR(before - Weight(0), rate, 1e-6f) << update;
    before = Weight(0);
  }
}

class Bf16UpdateTest : public UpdateShardTest {
 protected:
  Bf16UpdateTest()
      : UpdateShardTest([] {
          ShardOptions options = SspOptions(Options(OptimizerConfig::OFF));
          options.pull_format = CommConfig::BF16;
          options.optimizer.mutable_sgd()->set_momentum(0.5);
          return options;
        }()) {}
};

TEST_F(Bf16UpdateTest, TakesAndServesHalvesAndKeepsNoStateItDoesNotRead) {
  EXPECT_FALSE(shard_.m(0).empty());
  EXPECT_TRUE(shard_.v(0).empty());
  DeliverFrames(PushHeader(0, 0, 0), std::vector<float>(2 * kSegment, 1.5f * kTokens),
                {kBf16Frame});
  EXPECT_EQ(Weight(1), -1.5f);
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.virtual_worker_count = 1;
  pull.want = Want::kAtLeast;
  pull.codec = Codec::kBf16;
  Deliver(pull);
  ASSERT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  ASSERT_EQ(sent_.back().payload.size_bytes(), 2 * kSegment * sizeof(uint16_t));
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(sent_.back().payload.bytes().data())[kSegment],
            0xbfc0);
  snapshots_.clear();
  shard_.SnapshotStart();
  EXPECT_EQ(snapshots_.size(), 4u);
}

}  // namespace
}  // namespace tug
