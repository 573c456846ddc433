// SPDX-License-Identifier: Apache-2.0
// An exchange in a job whose view changes.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "exchange/exchange_test_support.h"

namespace tug {
namespace {

class ExchangeViewTest : public ExchangeTest {
 protected:
  ExchangeViewTest() : ExchangeTest(SyncConfig::BSP) {}

  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }
  // Enters a view with the same owners, in which lane 0 acts for lane 1 in pulls.
  std::vector<Outgoing> SetCachedView(uint32_t view) {
    std::vector<uint32_t> lane_of_segment;
    for (uint32_t id = 0; id < table_.size(); ++id) lane_of_segment.push_back(id % 2);
    sent_.clear();
    exchange_.SetView({view, std::move(lane_of_segment), {{1, 0}}}, now_);
    return Sent();
  }
  // Enters a view with the same owners: segments alternate between lanes 0 and 1.
  std::vector<Outgoing> SetView(uint32_t view) { return SetView(view, 2); }
  // Enters a view with segments assigned round-robin to lanes 0 to `lanes` - 1.
  std::vector<Outgoing> SetView(uint32_t view, uint32_t lanes) {
    std::vector<uint32_t> lane_of_segment;
    for (uint32_t id = 0; id < table_.size(); ++id) lane_of_segment.push_back(id % lanes);
    sent_.clear();
    exchange_.SetView({view, std::move(lane_of_segment)}, now_);
    return Sent();
  }
};

TEST_F(ExchangeViewTest, SendsAgainWhatIsNotCommittedUnderTheNewNumber) {
  Push(1);  // three partitions
  const std::vector<Outgoing> first = Sent();
  ASSERT_EQ(first.size(), 3u);
  Answer(first[0], MessageKind::kCommitted);
  Answer(first[1], MessageKind::kReceived);
  sent_.clear();
  const std::vector<Outgoing> again = SetView(2);
  ASSERT_EQ(again.size(), 2u);
  for (const Outgoing& push : again) {
    EXPECT_EQ(push.header.view, 2u);
    EXPECT_NE(push.header.first_segment, first[0].header.first_segment);
    EXPECT_EQ(push.payload.size_bytes(), kSegment * sizeof(float));
  }
  // Replies that a lane sent in the old view are ignored.
  Answer(first[2], MessageKind::kCommitted);
  EXPECT_TRUE(committed_.empty());
  for (const Outgoing& push : again) Answer(push, MessageKind::kCommitted);
  EXPECT_EQ(committed_.size(), 1u);
  EXPECT_TRUE(SetView(2).empty()) << "it is not newer";
  EXPECT_TRUE(SetView(3).empty()) << "nothing is open";
}

TEST_F(ExchangeViewTest, StaysWithinItsCreditWhenItSendsAgain) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Push(0, clock);
    for (const Outgoing& push : Sent()) Answer(push, MessageKind::kReceived);
  }
  EXPECT_EQ(SetView(2).size(), 4u) << "of nine partitions, four are the credit";
  EXPECT_LE(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
}

TEST_F(ExchangeViewTest, AsksAgainForWhatHasNotCome) {
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  const std::vector<Outgoing> first = Sent();
  Answer(first[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  const std::vector<Outgoing> again = SetView(2);
  ASSERT_EQ(again.size(), 2u);
  for (const Outgoing& pull : again) {
    EXPECT_EQ(pull.header.view, 2u);
    Answer(pull, MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  }
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(destination_[0], 1.0f);
  EXPECT_EQ(destination_[kSegment], 2.0f);
}

// They hold the lane's credit, which the lane keeps across views.
TEST_F(ExchangeViewTest, AcknowledgesWeightsOfTheViewBefore) {
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  std::vector<Outgoing> first = Sent();
  SetView(2);
  first[0].header.ack_id = 77;  // number of the answer
  Answer(first[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeightsReceived);
  EXPECT_EQ(sent_[0].header.ack_id, 77u);
  EXPECT_EQ(sent_[0].header.view, 2u);
  EXPECT_TRUE(pulled_.empty());
}

TEST_F(ExchangeViewTest, APullTakesThePlaceOfAnOpenOneOfItsBlock) {
  exchange_.Pull({1, Want::kExact, 5, destination_}, now_);
  const std::vector<Outgoing> first = Sent();
  Answer(first[0], MessageKind::kWeights, std::vector<float>(kSegment, 5.0f));
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].superseded);
  const std::vector<Outgoing> second = Sent();
  ASSERT_EQ(second.size(), 3u);
  Answer(first[1], MessageKind::kWeights, std::vector<float>(kSegment, 5.0f));
  for (const Outgoing& pull : second) {
    Answer(pull, MessageKind::kWeights, std::vector<float>(kSegment, 4.0f));
  }
  ASSERT_EQ(pulled_.size(), 2u);
  EXPECT_FALSE(pulled_[1].superseded);
  EXPECT_EQ(pulled_[1].version, 4u);
  EXPECT_TRUE(
      std::all_of(destination_.begin(), destination_.end(), [](float w) { return w == 4; }));
}

TEST_F(ExchangeViewTest, GivesUpThePushesOfVirtualWorkersThatOthersCarry) {
  Push(0);
  Push(1);
  const std::vector<Outgoing> pushes = Sent();
  ASSERT_EQ(pushes.size(), 4u) << "two partitions wait for credit";
  exchange_.SetCarried({{6, 7}}, now_);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
  ASSERT_EQ(committed_.size(), 2u);
  EXPECT_TRUE(committed_[0].dropped);
  EXPECT_TRUE(SetView(2).empty());
  for (const Outgoing& push : pushes) Answer(push, MessageKind::kCommitted);
  EXPECT_EQ(committed_.size(), 2u);
  Push(0);  // the virtual worker returns, at the same clock
  EXPECT_EQ(Sent().size(), 3u) << "all credit has returned";
}

// ---- lanes that act for owners ----

TEST_F(ExchangeViewTest, PullsFromTheLaneThatStandsInAndPushesToTheOwner) {
  EXPECT_TRUE(SetCachedView(2).empty());
  Push(1);  // segments 3, 4, 5: lanes 1, 0, 1
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 6u);
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(sent[s].header.kind, MessageKind::kPush);
    EXPECT_EQ(sent[s].to, LanePeer(1 - s % 2));
    EXPECT_EQ(sent[3 + s].header.kind, MessageKind::kPull);
    EXPECT_EQ(sent[3 + s].to, LanePeer(0));
    Answer(sent[3 + s], MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  }
  EXPECT_EQ(pulled_.size(), 1u);
}

TEST_F(ExchangeViewTest, PullsOfRunsGoToTheOwner) {
  SetCachedView(2);
  PullRequest pull{1, Want::kExact, 4, destination_};
  pull.runs = {{0, 8}, {kSegment, 2 * kSegment}};
  exchange_.Pull(pull, now_);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].header.codec, Codec::kRuns);
  EXPECT_EQ(sent[0].to, LanePeer(1));
  EXPECT_EQ(sent[1].header.codec, Codec::kNone) << "all of a segment";
}

TEST_F(ExchangeViewTest, AsksThoseThatStandInOnceTheyDoForAllAgain) {
  Push(1);
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  std::vector<Outgoing> first = Sent();
  ASSERT_EQ(first.size(), 6u);
  Answer(first[3], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  Answer(first[0], MessageKind::kCommitted);
  const std::vector<Outgoing> again = SetCachedView(2);
  ASSERT_EQ(again.size(), 5u) << "what is committed of a push is not pushed again";
  for (size_t i = 0; i < 3; ++i) {
    const Outgoing& pull = again[2 + i];
    ASSERT_EQ(pull.header.kind, MessageKind::kPull);
    EXPECT_EQ(pull.to, LanePeer(0));
    Answer(pull, MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  }
  EXPECT_EQ(pulled_.size(), 1u);
}

// ---- segments with new owners ----

TEST_F(ExchangeViewTest, CutsAPushAnewAndSendsAllOfItToTheNewOwners) {
  Push(1);  // segments 3, 4, 5: lanes 1, 0, 1
  const std::vector<Outgoing> first = Sent();
  Answer(first[0], MessageKind::kCommitted);
  const std::vector<Outgoing> again = SetView(2, 3);
  ASSERT_EQ(again.size(), 3u);
  for (uint32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(again[s].to, LanePeer(s)) << "segment " << 3 + s;
    EXPECT_EQ(again[s].header.view, 2u);
    EXPECT_EQ(again[s].header.first_segment, s);
    EXPECT_EQ(again[s].payload.bytes().data(), first[s].payload.bytes().data()) << "is no copy";
  }
  Answer(first[1], MessageKind::kCommitted);  // of the old view
  Answer(again[0], MessageKind::kCommitted);  // the lane has committed it
  Answer(again[1], MessageKind::kCommitted);
  EXPECT_TRUE(committed_.empty());
  Answer(again[2], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_FALSE(committed_[0].dropped);
  EXPECT_TRUE(SetView(3, 2).empty());
}

TEST_F(ExchangeViewTest, CutsPushesTogetherWhereOneLaneHasAll) {
  exchange_.SetSchedule({.partition_bytes = 3 * kSegment * sizeof(float),
                         .credit_bytes = 4 * kSegment * sizeof(float)},
                        now_);
  Push(1);
  ASSERT_EQ(Sent().size(), 3u) << "neighbours are on different lanes";
  const std::vector<Outgoing> again = SetView(2, 1);
  ASSERT_EQ(again.size(), 1u) << "by the newest schedule";
  EXPECT_EQ(again[0].header.segment_count, 3u);
  EXPECT_EQ(again[0].payload.size_bytes(), 3 * kSegment * sizeof(float));
  Answer(again[0], MessageKind::kCommitted);
  EXPECT_EQ(committed_.size(), 1u);
}

TEST_F(ExchangeViewTest, ReturnsTheCreditOfTheOldCut) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Push(0, clock);
    for (const Outgoing& push : Sent()) {
      if (clock == 0) Answer(push, MessageKind::kReceived);
    }
  }
  // All of one push is received, all of one is sent, and a part of one waits for credit.
  std::vector<Outgoing> leaving = SetView(2, 3);
  EXPECT_EQ(leaving.size(), 4u) << "of nine partitions, four are the credit";
  size_t left = 0;
  while (!leaving.empty()) {
    left += leaving.size();
    sent_.clear();
    for (const Outgoing& push : leaving) Answer(push, MessageKind::kCommitted);
    leaving = Sent();
  }
  EXPECT_EQ(left, 9u);
  EXPECT_EQ(committed_.size(), 3u);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
  EXPECT_LE(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
}

TEST_F(ExchangeViewTest, CutsAPullAnewAndAsksForAllOfIt) {
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  const std::vector<Outgoing> first = Sent();
  Answer(first[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  const std::vector<Outgoing> again = SetView(2, 3);
  ASSERT_EQ(again.size(), 3u);
  Answer(first[1], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  for (const Outgoing& pull : again) {
    EXPECT_TRUE(pulled_.empty());
    Answer(pull, MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  }
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_FALSE(pulled_[0].superseded);
  EXPECT_EQ(pulled_[0].version, 4u);
  EXPECT_EQ(destination_[0], 2.0f);
  EXPECT_EQ(destination_[2 * kSegment], 2.0f);
}

TEST_F(ExchangeViewTest, CutsWhatComesLaterByTheNewOwnersToo) {
  SetView(2, 3);
  exchange_.SetSchedule(
      {.partition_bytes = kSegment * sizeof(float), .credit_bytes = 4 * kSegment * sizeof(float)},
      now_);
  Push(0);
  const std::vector<Outgoing> pushes = Sent();
  ASSERT_EQ(pushes.size(), 3u);
  EXPECT_EQ(pushes[2].to, LanePeer(2));
  SetView(3, 2);
  exchange_.Pull({0, Want::kExact, 4, destination_}, now_);
  const std::vector<Outgoing> pulls = Sent();
  ASSERT_EQ(pulls.size(), 3u);
  EXPECT_EQ(pulls[2].to, LanePeer(0));
}

class ExchangeUpdateViewTest : public ExchangeTest {
 protected:
  ExchangeUpdateViewTest() : ExchangeTest(SyncConfig::ASP) {}
};

// Weights that arrive meanwhile are not those that its gradient was computed with.
TEST_F(ExchangeUpdateViewTest, APushCutAnewNamesTheVersionOfTheWeightsThatItIsOf) {
  const auto pull = [&](uint64_t clock, uint64_t first_version) {
    exchange_.Pull({0, Want::kAtLeast, clock, destination_}, now_);
    for (const Outgoing& asked : std::exchange(sent_, {})) {
      Outgoing of = asked;
      of.header.version = first_version + of.header.first_segment;
      Answer(of, MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
    }
  };
  pull(0, 20);
  Push(0, 0);
  sent_.clear();
  pull(1, 40);
  exchange_.SetSchedule({.partition_bytes = 3 * kSegment * sizeof(float),
                         .credit_bytes = 4 * kSegment * sizeof(float)},
                        now_);
  std::vector<uint32_t> one_lane(table_.size(), 7);
  exchange_.SetView({2, one_lane}, now_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].to, LanePeer(7));
  EXPECT_EQ(sent_[0].header.version, 20u) << "the lowest of its segments'";
}

}  // namespace
}  // namespace tug
