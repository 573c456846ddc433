// SPDX-License-Identifier: Apache-2.0
#include "server/replication/replication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tug {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kElements = 1024;
constexpr uint64_t kBytes = kElements * sizeof(float);
constexpr uint32_t kCopy = 7;
constexpr uint32_t kOther = 8;

// A lane owns segments 0 to 3; lane 7 has replicas of 0 to 2, lane 8 of 2.
class ReplicationTest : public testing::Test {
 protected:
  ReplicationTest()
      : table_(Table()),
        replication_({.resend_most = absl::Seconds(2),
                      .update_bytes = 2 * kBytes,
                      .copy_bytes = kElements * 16},
                     table_, std::vector<uint32_t>{0, 1, 2, 3},
                     {{kCopy}, {kCopy}, {kCopy, kOther}, {}}) {}

  static SegmentTable Table() {
    BlockTable blocks;
    blocks.add_blocks()->add_tensors()->add_shape(4 * kElements);
    return *SegmentTable::Create(blocks, kElements);
  }
  std::vector<Replication::Request> TakeRequests() {
    return std::exchange(replication_.requests(), {});
  }
  std::vector<uint32_t> TakeAcknowledged() {
    return std::exchange(replication_.acknowledged(), {});
  }
  // Kinds and segments of the pending requests.
  std::vector<std::pair<MessageKind, uint32_t>> Kinds() {
    std::vector<std::pair<MessageKind, uint32_t>> kinds;
    for (const Replication::Request& request : TakeRequests()) {
      kinds.emplace_back(request.kind, request.segment);
    }
    return kinds;
  }
  bool Copied(const Replication::Request& to, uint64_t version, uint64_t own) {
    return replication_.OnCopied(to.lane, to.segment, version, own, to.number, now_);
  }

  const SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  Replication replication_;
};

TEST_F(ReplicationTest, AnUpdateIsAppliedWhenAllCopiesHaveIt) {
  replication_.Offer(2, now_);
  const std::vector<Replication::Request> sent = TakeRequests();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_TRUE(Copied(sent[0], 1, 0));
  EXPECT_TRUE(Copied(sent[0], 1, 0)) << "once more";
  EXPECT_THAT(TakeAcknowledged(), IsEmpty());
  EXPECT_TRUE(Copied(sent[1], 0, 0)) << "it did not take it";
  EXPECT_THAT(TakeAcknowledged(), IsEmpty());
  EXPECT_TRUE(Copied(sent[1], 1, 0));
  EXPECT_THAT(TakeAcknowledged(), ElementsAre(2));
  EXPECT_TRUE(replication_.under_way(2));
  replication_.Applied(2, now_);
  EXPECT_FALSE(replication_.under_way(2));
  EXPECT_FALSE(replication_.OnCopied(kOther, 0, 1, 1, 0, now_)) << "that lane has no copy of it";
}

TEST_F(ReplicationTest, WithoutCopiesAnUpdateIsAppliedAtOnce) {
  replication_.Offer(3, now_);
  EXPECT_THAT(TakeRequests(), IsEmpty());
  EXPECT_THAT(TakeAcknowledged(), ElementsAre(3));
}

TEST_F(ReplicationTest, UpdatesUnderWayAreBoundedInBytes) {
  for (const uint32_t id : {0, 1, 2}) replication_.Offer(id, now_);
  const std::vector<Replication::Request> sent = TakeRequests();
  ASSERT_EQ(sent.size(), 2u);
  Copied(sent[1], 1, 0);
  EXPECT_THAT(TakeAcknowledged(), ElementsAre(1));
  replication_.Applied(1, now_);
  EXPECT_EQ(TakeRequests().size(), 2u) << "to the two copies of segment 2";
}

TEST_F(ReplicationTest, OnlyTheAnswerToAnUpdateItselfAcknowledgesIt) {
  replication_.Offer(0, now_);
  const Replication::Request sent = TakeRequests()[0];
  // An old message, repeated by the network; the replica has been overwritten since.
  replication_.OnCopied(kCopy, 0, 1, 0, 0, now_);
  EXPECT_THAT(TakeAcknowledged(), IsEmpty());
  Copied(sent, 1, 0);
  EXPECT_THAT(TakeAcknowledged(), ElementsAre(0));
}

TEST_F(ReplicationTest, SendsAgainWhatALaneDoesNotAnswerEverMoreSeldom) {
  replication_.Offer(0, now_);
  const uint64_t number = TakeRequests()[0].number;
  std::vector<int64_t> again_ms;
  for (int64_t ms = 50; ms <= 4000; ms += 50) {
    replication_.OnTick(now_ + absl::Milliseconds(ms));
    for (const Replication::Request& request : TakeRequests()) {
      EXPECT_EQ(request.number, number);
      again_ms.push_back(ms);
    }
  }
  EXPECT_THAT(again_ms, ElementsAre(200, 600, 1400, 3000));
}

TEST_F(ReplicationTest, WaitsLongerWhileTheLaneSaysOtherThings) {
  replication_.Offer(0, now_);
  replication_.Offer(1, now_);
  const std::vector<Replication::Request> sent = TakeRequests();
  for (int i = 0; i < 19; ++i) {
    now_ += absl::Milliseconds(100);
    Copied(sent[1], 0, 0);
    replication_.OnTick(now_);
    EXPECT_THAT(TakeRequests(), IsEmpty()) << i;
  }
  now_ += absl::Milliseconds(100);
  replication_.OnTick(now_);
  EXPECT_EQ(TakeRequests().size(), 2u) << "after resend_most";
}

TEST_F(ReplicationTest, AsksAtTheBeginningAndFillsWhatLags) {
  replication_.AskAll(now_);
  EXPECT_FALSE(replication_.all_in_sync());
  std::vector<Replication::Request> asked = TakeRequests();
  ASSERT_EQ(asked.size(), 4u);
  replication_.Offer(0, now_);
  EXPECT_THAT(TakeRequests(), IsEmpty()) << "nobody knows what the copy has";
  Copied(asked[0], 5, 5);
  EXPECT_THAT(Kinds(), ElementsAre(std::pair(MessageKind::kUpdate, 0u)));
  Copied(asked[1], kNoVersion, 5);
  Copied(asked[2], 3, 5);
  Copied(asked[3], 5, 5);
  // One replica is filled at a time; other segments do not wait for it.
  const std::vector<Replication::Request> filled = TakeRequests();
  ASSERT_EQ(filled.size(), 1u);
  EXPECT_EQ(filled[0].kind, MessageKind::kCopy);
  EXPECT_EQ(filled[0].segment, 1u);
  replication_.Offer(1, now_);
  EXPECT_THAT(TakeRequests(), IsEmpty());
  replication_.Offer(2, now_);
  const std::vector<Replication::Request> updates = TakeRequests();
  ASSERT_EQ(updates.size(), 1u) << "to the copy that follows only";
  EXPECT_EQ(updates[0].lane, kOther);
  Copied(updates[0], 6, 5);
  EXPECT_THAT(TakeAcknowledged(), ElementsAre(2));
  replication_.Applied(2, now_);
  Copied(asked[1], 5, 5);  // not the answer to the kCopy
  EXPECT_THAT(TakeRequests(), IsEmpty());
  Copied(filled[0], 5, 5);
  EXPECT_THAT(Kinds(),
              ElementsAre(std::pair(MessageKind::kCopy, 2u), std::pair(MessageKind::kUpdate, 1u)));
  EXPECT_FALSE(replication_.all_in_sync());
}

// It followed until recently, so it may have to replace the owner at any time.
TEST_F(ReplicationTest, UpdatesWaitForACopyThatIsAhead) {
  replication_.AskAll(now_);
  const std::vector<Replication::Request> asked = TakeRequests();
  Copied(asked[1], 4, 5);  // behind: uses the room for filling
  Copied(asked[0], 6, 5);
  replication_.Offer(0, now_);
  std::vector<Replication::Request> sent = TakeRequests();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].segment, 1u);
  Copied(sent[0], 5, 5);
  sent = TakeRequests();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].kind, MessageKind::kCopy);
  EXPECT_EQ(sent[0].segment, 0u);
  Copied(sent[0], 5, 5);
  EXPECT_THAT(Kinds(), ElementsAre(std::pair(MessageKind::kUpdate, 0u)));
}

TEST_F(ReplicationTest, InAnotherViewWhatIsOpenIsSentAgainUnderItsNumber) {
  replication_.Offer(0, now_);
  const Replication::Request sent = TakeRequests()[0];
  replication_.AskAgain(now_);
  const std::vector<Replication::Request> again = TakeRequests();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].number, sent.number);
  // The replica enters the view later, and has dropped earlier messages.
  replication_.OnCopied(kCopy, 0, 0, 0, 0, now_);
  EXPECT_EQ(TakeRequests().size(), 1u);
}

}  // namespace
}  // namespace tug
