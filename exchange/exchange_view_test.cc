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
  ExchangeViewTest() : ExchangeTest(/*update_per_push=*/false) {}

  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }
  std::vector<Outgoing> SetView(uint32_t view) {
    sent_.clear();
    exchange_.SetView(view, now_);
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
  // What a lane said before it was fenced is of no use any more.
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

// They hold the lane's credit, which does not forget whom it has sent to.
TEST_F(ExchangeViewTest, AcknowledgesWeightsOfTheViewBefore) {
  exchange_.Pull({1, Want::kExact, 4, destination_}, now_);
  std::vector<Outgoing> first = Sent();
  SetView(2);
  first[0].header.clock = 77;  // number of the answer
  Answer(first[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeightsReceived);
  EXPECT_EQ(sent_[0].header.clock, 77u);
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
  exchange_.SetCarried({{6, 7}, 6, 2}, now_);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
  ASSERT_EQ(committed_.size(), 2u);
  EXPECT_TRUE(committed_[0].dropped);
  EXPECT_TRUE(SetView(2).empty());
  for (const Outgoing& push : pushes) Answer(push, MessageKind::kCommitted);
  EXPECT_EQ(committed_.size(), 2u);
  Push(0);  // it comes back, with the same clock
  EXPECT_EQ(Sent().size(), 3u) << "all credit has returned";
  exchange_.Pull({1, Want::kAtLeast, 4, destination_}, now_);
  EXPECT_EQ(sent_[0].header.virtual_worker, 6u);
}

}  // namespace
}  // namespace tug
