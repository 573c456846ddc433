// SPDX-License-Identifier: Apache-2.0
// A lane that enters a new view of the same timeline.
#include <gtest/gtest.h>

#include "server/shard/shard.h"
#include "server/shard/shard_test_support.h"
#include "server/sums/norm_ledger.h"

namespace tug {
namespace {

constexpr uint32_t kNewView = 5;

class ViewShardTest : public ShardTest {
 protected:
  explicit ViewShardTest(OptimizerConfig::Clip clip = OptimizerConfig::OFF) : ShardTest(clip) {}

  void ToNewView() { shard_.SetView(kNewView, LiveSet(2), now_); }
  void PushInNewView(uint32_t block, uint32_t virtual_worker, uint64_t clock, PeerId sender) {
    WireHeader header = PushHeader(block, virtual_worker, clock);
    header.view = kNewView;
    header.sender = sender;
    Deliver(header, std::vector<float>(2 * kSegment, 1.0f));
  }
};

TEST_F(ViewShardTest, KeepsWhatWasPushedAndTakesTheRestFromWhoHasItNow) {
  Push(0, 1, 0);
  Push(1, 1, 0);
  EXPECT_EQ(shard_.Clocks(), (std::vector<uint64_t>{0, 0})) << "no version has them";
  ToNewView();
  Push(0, 0, 0);  // of the old view
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
  EXPECT_EQ(sent_.back().header.view, kNewView);
  const PeerId other = WorkerPeer(9);
  PushInNewView(0, 1, 0, other);  // already summed: not added again
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kReceived);
  PushInNewView(0, 0, 0, other);
  EXPECT_EQ(shard_.version(0), 1u);
  size_t told = 0;
  for (const Outgoing& message : sent_) {
    told += message.header.kind == MessageKind::kCommitted && message.to == other ? 1 : 0;
  }
  EXPECT_EQ(told, 2u);
}

TEST_F(ViewShardTest, AnswersAPullThatIsAskedForAgainInTheNewView) {
  Push(0, 1, 0);
  Pull(0, 1);
  ToNewView();
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.view = kNewView;
  pull.clock = 1;
  Deliver(pull);
  PushInNewView(0, 0, 0, kWorker);
  ASSERT_EQ(Count(MessageKind::kWeights), 1u);
  EXPECT_EQ(sent_.back().header.view, kNewView);
}

// A worker that crashes repeatedly during one step.
TEST_F(ViewShardTest, TakesAPushHoweverOftenItsVirtualWorkerHasMoved) {
  for (uint32_t move = 0; move < 100; ++move) {
    shard_.SetView(kNewView + move, LiveSet(2), now_);
    WireHeader push = PushHeader(0, 1, 0);
    push.view = kNewView + move;
    push.sender = WorkerPeer(9 + move);
    Deliver(push, std::vector<float>(2 * kSegment, 1.0f));
    ASSERT_EQ(sent_.back().header.kind, MessageKind::kReceived);
  }
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

// Pushes that arrived in the new view stay.
TEST_F(ViewShardTest, WaitsForAllUntilItIsToldWhoLives) {
  ToNewView();
  PushInNewView(0, 0, 0, kWorker);
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.view = kNewView;
  pull.clock = 1;
  Deliver(pull);
  EXPECT_EQ(shard_.version(0), 0u);
  shard_.SetView(kNewView, LiveSet(std::vector<bool>{true, false}), now_);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(Count(MessageKind::kWeights), 1u);
}

class ClippedViewShardTest : public ViewShardTest {
 protected:
  ClippedViewShardTest() : ViewShardTest(OptimizerConfig::GLOBAL) {}
};

// The other lane may have refused this lane's norms, and sent norms that were refused here.
TEST_F(ClippedViewShardTest, SendsItsNormsAgainAndAsksForThoseItLacks) {
  for (const uint32_t block : {0u, 1u}) {
    for (const uint32_t vw : {0u, 1u}) Push(block, vw, 0);
  }
  EXPECT_EQ(Count(MessageKind::kNorms), 1u);
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 0u);
  ToNewView();
  EXPECT_EQ(Count(MessageKind::kNorms), 2u);
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 1u);
  EXPECT_EQ(sent_.back().header.view, kNewView);
  const auto norms = std::make_shared<std::vector<NormEntry>>(2);
  WireHeader header = Header(MessageKind::kNorms, NormLedger::kAllBlocks, LanePeer(kOtherLane));
  header.view = kNewView;
  shard_.OnMessage({header, Lease(norms, std::as_bytes(std::span(*norms)))}, now_);
  EXPECT_EQ(shard_.version(0), 1u);
  sent_.clear();
  shard_.SetView(kNewView + 1, LiveSet(2),
                 now_);  // now the other lane may lack the norms of clock 0
  EXPECT_EQ(Count(MessageKind::kNorms), 1u);
  EXPECT_EQ(sent_[0].header.clock, 0u);
}

// The other lane has closed the clock that is open here, and its norms were refused: it does not
// send them again by itself.
TEST_F(ClippedViewShardTest, AsksForNormsBeforeItsOwnSumsAreComplete) {
  Push(0, 0, 0);
  ToNewView();
  EXPECT_EQ(Count(MessageKind::kNorms), 0u);
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 1u);
  EXPECT_EQ(sent_.back().to, LanePeer(kOtherLane));
  EXPECT_EQ(sent_.back().header.clock, 0u);
}

// If segments moved before it has closed, the push would be needed.
TEST_F(ClippedViewShardTest, APushThatComesTooLateIsToldSoWhenItsClockHasClosed) {
  shard_.SetView(kNewView, LiveSet(std::vector<bool>{true, false}), now_);
  PushInNewView(0, 0, 0, kWorker);
  PushInNewView(1, 0, 0, kWorker);
  EXPECT_EQ(shard_.version(0), 0u) << "norms of the other lane are missing";
  PushInNewView(0, 1, 0, WorkerPeer(9));
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kReceived);
  EXPECT_EQ(Count(MessageKind::kDropped), 0u);
}

}  // namespace
}  // namespace tug
