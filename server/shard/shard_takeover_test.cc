// SPDX-License-Identifier: Apache-2.0
// A lane that enters another placement of the same timeline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/shard/shard.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kNextView = 6;

// The lane owns the first block; the other lane owns the second, and has a replica of the first.
class TakeoverTest : public ShardTest {
 protected:
  explicit TakeoverTest(SyncConfig::Policy policy = SyncConfig::BSP)
      : ShardTest(FirstOptions(policy)) {
    for (const uint32_t id : shard_.segments()) {
      for (float& weight : shard_.weights(id)) weight = 1.0f;
    }
  }

  static ShardOptions FirstOptions(SyncConfig::Policy policy) {
    ShardOptions options = Options(OptimizerConfig::PER_BLOCK);
    options.placement = options.view;
    options.sync.set_policy(policy);
    options.lane_of_segment = {kLane, kLane, kLane, kOtherLane, kOtherLane, kOtherLane};
    return options;
  }
  // In the next placement the first block belongs to the other lane, or still to this one.
  static ShardOptions NextOptions(SyncConfig::Policy policy, uint32_t lane, uint32_t owner,
                                  uint32_t copy) {
    ShardOptions options = FirstOptions(policy);
    options.lane = lane;
    options.view = options.placement = kNextView;
    for (uint32_t id = 0; id < 3; ++id) options.lane_of_segment[id] = owner;
    options.copies = {{copy}, {copy}, {copy}, {}, {}, {}};
    return options;
  }
  Shard Next(uint32_t lane, uint32_t owner, uint32_t copy,
             SyncConfig::Policy policy = SyncConfig::BSP) {
    return Shard(NextOptions(policy, lane, owner, copy), table_,
                 {.send = [this](Outgoing m) { next_sent_.push_back(std::move(m)); },
                  .snapshot =
                      [this](const SegmentSnapshot& s) {
                        next_snapshots_.push_back(s.segment);
                        next_snapshot_versions_.push_back(s.version);
                      },
                  .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
  }
  // Both virtual workers push segments [first, first + count) of the first block.
  void PushBoth(uint32_t first, uint32_t count, uint64_t clock) {
    for (const uint32_t vw : {0u, 1u}) {
      WireHeader header = PushHeader(0, vw, clock);
      header.first_segment = first;
      header.segment_count = count;
      Deliver(header, std::vector<float>(count * kSegment, 1.0f));
    }
  }
  std::vector<MessageKind> NextKinds() const {
    std::vector<MessageKind> kinds;
    for (const Outgoing& message : next_sent_) kinds.push_back(message.header.kind);
    return kinds;
  }
  static WireHeader OfCopy(MessageKind kind, uint32_t view, uint32_t from_lane, uint64_t version) {
    WireHeader header = Header(kind, 0, LanePeer(from_lane));
    header.segment_count = 1;
    header.view = view;
    header.version = version;
    return header;
  }

  std::vector<Outgoing> next_sent_;
  std::vector<uint32_t> next_snapshots_;
  std::vector<uint64_t> next_snapshot_versions_;
};

TEST_F(TakeoverTest, TakesAgainTheSnapshotsThatAreDueAndNoOthers) {
  for (const uint64_t clock : {0, 1}) PushBoth(0, 3, clock);
  ASSERT_THAT(snapshots_, ElementsAre(0, 1, 2));
  Shard next = Next(kLane, kLane, kOtherLane);
  ASSERT_TRUE(next.InheritFrom(&shard_, now_).ok());
  EXPECT_THAT(next_snapshots_, ElementsAre(0, 1, 2));
  EXPECT_THAT(next_snapshot_versions_, Each(2u));
  EXPECT_EQ(next.version(0), 2u);
  EXPECT_EQ(next.counters().updates, 6u);
}

TEST_F(TakeoverTest, DropsSumsAndSaysSo) {
  PushBoth(0, 3, 0);
  Push(0, 1, 1);
  Shard next = Next(kLane, kLane, kOtherLane);
  ASSERT_TRUE(next.InheritFrom(&shard_, now_).ok());
  EXPECT_EQ(next.Clocks(), (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(next.held_bytes(), 0u);
  EXPECT_THAT(next_snapshots_, IsEmpty());
}

TEST_F(TakeoverTest, AsksItsCopiesAndFillsThem) {
  PushBoth(0, 3, 0);
  Shard next = Next(kLane, kLane, kOtherLane);
  ASSERT_TRUE(next.InheritFrom(&shard_, now_).ok());
  EXPECT_EQ(std::count_if(next_sent_.begin(), next_sent_.end(),
                          [](const Outgoing& message) {
                            return message.header.kind == MessageKind::kCopyWanted &&
                                   message.header.view == kNextView;
                          }),
            3);
  EXPECT_FALSE(next.CopiesInSync());
  next_sent_.clear();
  // A message of the previous view is ignored.
  next.OnMessage({OfCopy(MessageKind::kCopied, 4, kOtherLane, 1), Lease()}, now_);
  EXPECT_THAT(next_sent_, IsEmpty());
  EXPECT_EQ(next.counters().refused, 1u);
  next.OnMessage({OfCopy(MessageKind::kCopied, kNextView, kOtherLane, kNoVersion), Lease()}, now_);
  ASSERT_THAT(NextKinds(), ElementsAre(MessageKind::kCopy));
  const Outgoing copy = next_sent_[0];
  WireHeader answer = OfCopy(MessageKind::kCopied, kNextView, kOtherLane, 1);
  answer.ack_id = copy.header.ack_id;
  for (uint32_t index = 0; index < 3; ++index) {
    answer.first_segment = index;
    next.OnMessage({answer, Lease()}, now_);
  }
  EXPECT_TRUE(next.CopiesInSync());
}

// The lane turns its own segments into replicas.
TEST_F(TakeoverTest, AnOwnerOfBeforeRefusesNothingNewAndTakesNothingOld) {
  PushBoth(0, 3, 0);
  Shard next = Next(kLane, kOtherLane, kLane);
  ASSERT_TRUE(next.InheritFrom(&shard_, now_).ok());
  EXPECT_THAT(next.segments(), IsEmpty());
  EXPECT_THAT(next.held(), ElementsAre(0, 1, 2));
  EXPECT_EQ(next.copy_version(0), 1u);
  EXPECT_THAT(NextKinds(), Each(MessageKind::kCopied));
  next_sent_.clear();
  const std::vector<float> gradient(kSegment, 1.0f);
  const SegmentUpdate update{.step = {.t = 1}, .norm = {}, .gradient = gradient};
  auto payload = std::make_shared<std::vector<std::byte>>(UpdatePayloadBytes(update));
  WriteUpdatePayload(update, *payload);
  const Lease lease(payload, std::span<const std::byte>(*payload));
  next.OnMessage({OfCopy(MessageKind::kUpdate, 4, kOtherLane, 1), lease}, now_);
  EXPECT_EQ(next.copy_version(0), 1u) << "of the view before";
  EXPECT_THAT(next_sent_, IsEmpty());
  next.OnMessage({OfCopy(MessageKind::kUpdate, kNextView, kOtherLane, 1), lease}, now_);
  EXPECT_EQ(next.copy_version(0), 2u);
  ASSERT_THAT(NextKinds(), ElementsAre(MessageKind::kCopied));
  EXPECT_EQ(next_sent_[0].header.version, 2u);
}

TEST_F(TakeoverTest, ALaneThatHasNothingCanCopyAndNotOwn) {
  Shard copies = Next(kLane, kOtherLane, kLane);
  ASSERT_TRUE(copies.InheritFrom(nullptr, now_).ok());
  ASSERT_EQ(next_sent_.size(), 3u);
  EXPECT_EQ(next_sent_[0].header.version, kNoVersion);
  Shard owns = Next(kLane, kLane, kOtherLane);
  const absl::Status refused = owns.InheritFrom(nullptr, now_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was assigned segment 0"));
}

TEST_F(TakeoverTest, WithBackupWorkersSegmentsStayWhereTheyAre) {
  Shard next = Next(kLane, kLane, kOtherLane, SyncConfig::BACKUP);
  EXPECT_EQ(next.InheritFrom(&shard_, now_).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tug
