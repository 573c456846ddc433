// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/weight_cache.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "blocks/weights_payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::Each;

constexpr uint64_t kSegment = 4096;
constexpr uint32_t kOwner = 300, kSelf = 301, kOther = 302;
constexpr PeerId kWorker = WorkerPeer(7);

SegmentTable Table() {
  BlockTable blocks;
  for (int b = 0; b < 2; ++b) blocks.add_blocks()->add_tensors()->add_shape(4 * kSegment);
  return *SegmentTable::Create(blocks, kSegment);
}

// Two blocks; segments 0 to 2 of each belong to a lane whose weights are cached, segment 3 does
// not.
class WeightCacheTest : public testing::Test {
 protected:
  explicit WeightCacheTest(Codec codec = Codec::kNone)
      : table_(Table()),
        cache_({.job = 9,
                .timeline = 1,
                .view = 4,
                .lane_of_segment = {kOwner, kOwner, kOwner, kOther, kOwner, kOwner, kOwner, kSelf},
                .lanes = {kOwner},
                .codec = codec,
                .resend_first = absl::Milliseconds(200),
                .resend_after = absl::Seconds(1),
                .new_buffer =
                    [this](size_t size_bytes) {
                      ++buffers_made_;
                      return std::make_shared<AlignedBuffer>(size_bytes);
                    }},
               table_, [this](Outgoing m) { sent_.push_back(std::move(m)); }),
        codec_(codec) {}

  WireHeader Pull(uint64_t version, uint32_t first = 0, uint32_t count = 2, uint32_t block = 0) {
    WireHeader header;
    header.kind = MessageKind::kPull;
    header.job = 9;
    header.timeline = 1;
    header.view = 4;
    header.block = block;
    header.first_segment = first;
    header.segment_count = count;
    header.codec = codec_;
    header.clock = version;
    header.virtual_worker = 3;
    header.virtual_worker_count = 1;
    header.sender = kWorker;
    return header;
  }
  // The owner's answer: every byte is the version.
  Message Weights(const WireHeader& pull, uint64_t number = 0) {
    const uint32_t first = table_.id(pull.block, pull.first_segment);
    auto owner = std::make_shared<std::vector<std::byte>>(
        WeightsBytes(pull.codec, table_, first, pull.segment_count),
        static_cast<std::byte>(pull.clock));
    Message message{pull, Lease(owner, std::span<const std::byte>(*owner))};
    message.header.kind = MessageKind::kWeights;
    message.header.sender = LanePeer(kOwner);
    message.header.version = pull.clock;
    message.header.ack_id = number;
    return message;
  }
  // The owner refuses: it has `version`; 0: the pull belonged to another view.
  static WireHeader Refused(WireHeader pull, uint64_t version) {
    pull.kind = MessageKind::kRefused;
    pull.sender = LanePeer(kOwner);
    pull.version = version;
    return pull;
  }
  void Bring(uint64_t version, uint32_t first = 0, uint32_t count = 2) {
    cache_.Ask(Pull(version, first, count), now_);
    EXPECT_TRUE(cache_.OnWeights(Weights(Pull(version, first, count))));
  }
  bool Has(uint64_t version, uint32_t first = 0, uint32_t count = 2) {
    const std::optional<Lease> weights = cache_.Find(Pull(version, first, count));
    if (!weights.has_value()) return false;
    EXPECT_THAT(weights->bytes(), Each(static_cast<std::byte>(version)));
    return true;
  }
  std::vector<Outgoing> Sent() { return std::exchange(sent_, {}); }

  SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Outgoing> sent_;
  int buffers_made_ = 0;
  WeightCache cache_;
  const Codec codec_;
};

TEST_F(WeightCacheTest, AsksTheOwnerOnceForAllWhoWantTheSame) {
  cache_.Ask(Pull(3), now_);
  cache_.Ask(Pull(3), now_);
  const std::vector<Outgoing> sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].to, LanePeer(kOwner));
  EXPECT_EQ(sent[0].header.kind, MessageKind::kPull);
  EXPECT_EQ(sent[0].header.clock, 3u);
  EXPECT_EQ(sent[0].header.segment_count, 2u);
  EXPECT_EQ(sent[0].header.view, 4u);
  EXPECT_FALSE(Has(3));
  EXPECT_TRUE(cache_.OnWeights(Weights(Pull(3))));
  EXPECT_TRUE(Has(3));
  cache_.Ask(Pull(3), now_);
  EXPECT_TRUE(Sent().empty());
}

TEST_F(WeightCacheTest, AsksAgainUntilThereIsAnAnswerAndTakesItOnce) {
  cache_.Ask(Pull(3), now_);
  for (int i = 0; i < 3; ++i) {
    sent_.clear();
    cache_.OnTick(now_ += absl::Milliseconds(900));
    EXPECT_TRUE(sent_.empty());
    cache_.OnTick(now_ += absl::Milliseconds(100));
    ASSERT_EQ(sent_.size(), 1u);
    EXPECT_EQ(sent_[0].header.kind, MessageKind::kPull);
  }
  EXPECT_TRUE(cache_.OnWeights(Weights(Pull(3))));
  EXPECT_FALSE(cache_.OnWeights(Weights(Pull(3)))) << "a repeat";
  sent_.clear();
  cache_.OnTick(now_ += absl::Seconds(5));
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(cache_.peak_held_bytes(), 2 * kSegment * sizeof(float));
}

TEST_F(WeightCacheTest, ReturnsTheCreditOfEveryAnswer) {
  cache_.Ask(Pull(3), now_);
  sent_.clear();
  for (const uint64_t number : {77u, 78u}) {  // the second is a repeat
    cache_.OnWeights(Weights(Pull(3), number));
    ASSERT_EQ(sent_.size(), 1u);
    EXPECT_EQ(sent_[0].to, LanePeer(kOwner));
    EXPECT_EQ(sent_[0].header.kind, MessageKind::kWeightsReceived);
    EXPECT_EQ(sent_[0].header.ack_id, number);
    EXPECT_EQ(sent_[0].header.view, 4u);
    sent_.clear();
  }
  WireHeader old = Weights(Pull(3), 79).header;
  old.view = 3;
  cache_.OnFenced(old, now_);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.ack_id, 79u);
  sent_.clear();
  old.timeline = 0;
  cache_.OnFenced(old, now_);
  EXPECT_TRUE(sent_.empty()) << "that lane is another shard since";
}

TEST_F(WeightCacheTest, ForgetsWhatIsOlderOfTheSameSegments) {
  Bring(3, 0, 2);
  Bring(3, 2, 1);
  EXPECT_EQ(cache_.peak_held_bytes(), 3 * kSegment * sizeof(float));
  const std::optional<Lease> read = cache_.Find(Pull(3));
  Bring(4, 0, 2);
  EXPECT_FALSE(Has(3, 0, 2));
  EXPECT_TRUE(Has(4, 0, 2));
  EXPECT_TRUE(Has(3, 2, 1)) << "of another segment";
  EXPECT_THAT(read->bytes(), Each(std::byte{3})) << "who reads it goes on";
  EXPECT_EQ(cache_.peak_held_bytes(), 3 * kSegment * sizeof(float)) << "one version of each";
}

TEST_F(WeightCacheTest, ForgetsWhatIsOlderHoweverItWasCut) {
  Bring(3, 0, 2);
  Bring(3, 2, 1);
  Bring(4, 1, 2);
  EXPECT_FALSE(Has(3, 0, 2));
  EXPECT_FALSE(Has(3, 2, 1));
  EXPECT_FALSE(Has(4, 0, 2)) << "only what is asked for as it was is here";
  EXPECT_TRUE(Has(4, 1, 2));
}

TEST_F(WeightCacheTest, HasOnePayloadOfASegmentHoweverOftenItIsCutAnew) {
  const std::pair<uint32_t, uint32_t> cuts[] = {{0, 1}, {1, 1}, {2, 1}, {0, 2}, {1, 2}, {0, 3}};
  for (const auto& [first, count] : cuts) Bring(3, first, count);
  EXPECT_EQ(cache_.peak_held_bytes(), 3 * kSegment * sizeof(float));
  EXPECT_TRUE(Has(3, 0, 3));
  const std::optional<Lease> read = cache_.Find(Pull(3, 0, 3));
  Bring(3, 1, 1);
  EXPECT_FALSE(Has(3, 0, 3));
  EXPECT_TRUE(Has(3, 1, 1));
  EXPECT_THAT(read->bytes(), Each(std::byte{3})) << "who reads it goes on";
  Bring(2, 0, 3);  // the previous version, which arrives later
  for (const auto& [first, count] : cuts) Bring(2, first, count);
  EXPECT_EQ(cache_.peak_held_bytes(), 4 * kSegment * sizeof(float)) << "of both versions";
}

TEST_F(WeightCacheTest, WaitsForAnOlderVersionAlthoughANewerOneHasCome) {
  cache_.Ask(Pull(3), now_);
  Bring(4);
  EXPECT_TRUE(cache_.OnWeights(Weights(Pull(3))));
  EXPECT_TRUE(Has(3));
  EXPECT_TRUE(Has(4));
  Bring(5);
  EXPECT_FALSE(Has(3));
  EXPECT_FALSE(Has(4));
}

TEST_F(WeightCacheTest, GivesUpWhatIsTwoVersionsOlderThanWhatComes) {
  for (const uint64_t version : {2u, 3u, 4u}) cache_.Ask(Pull(version), now_);
  cache_.Ask(Pull(2, 2, 1), now_);
  EXPECT_TRUE(cache_.OnWeights(Weights(Pull(4))));
  EXPECT_FALSE(cache_.Knows(Pull(2)));
  EXPECT_TRUE(cache_.Knows(Pull(3))) << "which the owner has too";
  EXPECT_TRUE(cache_.Knows(Pull(2, 2, 1))) << "of another segment";
  sent_.clear();
  cache_.OnTick(now_ += absl::Seconds(1));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].header.clock, 3u);
  EXPECT_EQ(sent_[1].header.first_segment, 2u);
}

TEST_F(WeightCacheTest, TakesOnlyWhatItAskedForFromWhomItAsked) {
  EXPECT_FALSE(cache_.OnWeights(Weights(Pull(3)))) << "not asked for";
  cache_.Ask(Pull(3), now_);
  EXPECT_FALSE(cache_.OnWeights(Weights(Pull(4))));
  EXPECT_FALSE(cache_.OnWeights(Weights(Pull(3, 0, 1))));
  Message message = Weights(Pull(3));
  message.header.sender = LanePeer(kOther);
  EXPECT_FALSE(cache_.OnWeights(message));
  message = Weights(Pull(3));
  message.payload = message.payload.Slice(0, 4);
  EXPECT_FALSE(cache_.OnWeights(message)) << "too short";
  message.header.block = 100;
  EXPECT_FALSE(cache_.OnWeights(message));
  EXPECT_FALSE(Has(3));
}

TEST_F(WeightCacheTest, CanAnswerExactPullsOfOneLaneThatItKeeps) {
  EXPECT_TRUE(cache_.CanAnswer(Pull(3, 0, 3)));
  EXPECT_FALSE(cache_.CanAnswer(Pull(3, 0, 4))) << "two lanes";
  EXPECT_FALSE(cache_.CanAnswer(Pull(3, 3, 1))) << "a lane that is not kept";
  EXPECT_FALSE(cache_.CanAnswer(Pull(3, 3, 1, 1))) << "its own";
  WireHeader pull = Pull(3);
  pull.want = Want::kAtLeast;
  EXPECT_FALSE(cache_.CanAnswer(pull));
  pull = Pull(3);
  pull.codec = Codec::kRuns;
  EXPECT_FALSE(cache_.CanAnswer(pull));
}

TEST_F(WeightCacheTest, ForgetsWhatTheOwnerRefusesUntilItIsAskedForAgain) {
  cache_.Ask(Pull(3), now_);
  cache_.OnRefused(Refused(Pull(3), 9), now_);
  EXPECT_FALSE(cache_.Knows(Pull(3)));
  sent_.clear();
  cache_.OnTick(now_ += absl::Seconds(5));
  EXPECT_TRUE(sent_.empty());
  cache_.Ask(Pull(3), now_);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(WeightCacheTest, AsksSoonAgainWhereTheOwnerIsInAnotherView) {
  cache_.Ask(Pull(3), now_);
  WireHeader refused = Refused(Pull(3), 0);
  refused.view = 3;
  cache_.OnFenced(refused, now_);
  sent_.clear();
  cache_.OnTick(now_ += absl::Milliseconds(200));
  EXPECT_EQ(sent_.size(), 1u);
}

// The owner had entered this view when a pull of the previous one arrived; this lane has entered
// it, too, when it reads the refusal.
TEST_F(WeightCacheTest, ARefusalOfAPullOfTheViewBeforeTakesNothingFromTheNextOne) {
  cache_.Ask(Pull(3), now_);
  cache_.SetView(5);
  cache_.Ask(Pull(3), now_);
  WireHeader refused = Refused(Pull(3), 0);
  refused.view = 5;
  cache_.OnRefused(refused, now_);
  EXPECT_TRUE(cache_.OnWeights(Weights(Pull(3)))) << "it has been asked for";
  EXPECT_TRUE(Has(3));
}

TEST_F(WeightCacheTest, AsksSoonAgainAfterARefusalThatNamesNoLaterVersion) {
  cache_.Ask(Pull(3), now_);
  cache_.OnRefused(Refused(Pull(3), 0), now_);
  sent_.clear();
  cache_.OnTick(now_ += absl::Milliseconds(200));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.clock, 3u);
}

TEST_F(WeightCacheTest, ANewViewForgetsAll) {
  Bring(3);
  cache_.Ask(Pull(4), now_);
  cache_.SetView(5);
  EXPECT_FALSE(Has(3));
  sent_.clear();
  cache_.OnTick(now_ += absl::Seconds(5));
  EXPECT_TRUE(sent_.empty());
  Bring(3);
  EXPECT_TRUE(Has(3));
  EXPECT_EQ(cache_.peak_held_bytes(), 2 * kSegment * sizeof(float));
}

class Int8WeightCacheTest : public WeightCacheTest {
 protected:
  Int8WeightCacheTest() : WeightCacheTest(Codec::kInt8) {}
};

TEST_F(Int8WeightCacheTest, KeepsWeightsAsTheyCome) {
  Bring(3);
  EXPECT_TRUE(Has(3));
  EXPECT_EQ(cache_.peak_held_bytes(), 2 * WeightsBytes(Codec::kInt8, kSegment));
}

TEST_F(Int8WeightCacheTest, UsesTheBuffersOfTheVersionBefore) {
  const std::vector<uint32_t> owned = {kOwner, kOwner, kOwner, kOther,
                                       kOwner, kOwner, kOwner, kSelf};
  const KeptBytes kept = KeptBytesOf(owned, std::vector<uint32_t>{kOwner}, Codec::kInt8, table_);
  EXPECT_EQ(kept.payloads, 6 * WeightsBytes(Codec::kInt8, kSegment));
  EXPECT_GT(kept.buffers, kept.payloads);
  for (uint64_t version = 3; version < 9; ++version) {
    for (uint32_t block = 0; block < 2; ++block) {
      for (uint32_t first = 0; first < 3; ++first) {
        cache_.Ask(Pull(version, first, 1, block), now_);
        ASSERT_TRUE(cache_.OnWeights(Weights(Pull(version, first, 1, block))));
      }
    }
  }
  EXPECT_EQ(buffers_made_, 6);
}

}  // namespace
}  // namespace tug
