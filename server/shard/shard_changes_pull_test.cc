// SPDX-License-Identifier: Apache-2.0
// Pulls of changes: shadows that a lane keeps, and its answers.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "blocks/weight_changes.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

class ChangesShardTest : public ShardTest {
 protected:
  explicit ChangesShardTest(uint64_t interval = 0)
      : ShardTest(ChangesOptions(interval)), holds_(table_), weights_(2 * kSegment) {
    for (uint32_t id : {0u, 1u}) {
      for (uint64_t i = 0; i < kSegment; ++i) {
        shard_.weights(id)[i] = static_cast<float>(id + 1) - static_cast<float>(i) * 1e-4f;
      }
    }
  }

  static ShardOptions ChangesOptions(uint64_t interval) {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.pull_format = CommConfig::CHANGES;
    options.pull_density = 0.1;
    options.checkpoint_interval = interval;
    return options;
  }

  static Partition Part(uint32_t first, uint32_t count) {
    return {.first_segment = first,
            .segment_count = count,
            .begin = first * kSegment,
            .end = (first + count) * kSegment};
  }
  // Elements of the gradient differ in size, and so do their changes.
  void PushBoth(uint64_t clock) {
    for (const uint32_t vw : {0u, 1u}) {
      std::vector<float> gradient(2 * kSegment);
      for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<float>(i % 97) - 48.0f + static_cast<float>(clock);
      }
      Deliver(PushHeader(0, vw, clock), gradient);
    }
  }
  // Pulls the weights of `clock` as a worker that holds `version`.
  const Outgoing& Ask(uint64_t clock, uint64_t version, uint32_t first = 0, uint32_t count = 2) {
    WireHeader header = Header(MessageKind::kPull, 0);
    header.codec = Codec::kChanges;
    header.version = version;
    header.clock = clock;
    header.first_segment = first;
    header.segment_count = count;
    Deliver(header);
    EXPECT_EQ(sent_.back().header.kind, MessageKind::kWeights);
    return sent_.back();
  }
  // Pulls the whole shadow.
  std::vector<float> Whole(uint64_t version) {
    const Outgoing& answer = Ask(version, kNoVersion);
    EXPECT_EQ(answer.header.codec, Codec::kNone);
    const std::span<const float> floats = answer.payload.floats();
    return {floats.begin(), floats.end()};
  }
  // Pulls as a worker with this test's weights, and applies the answer.
  Codec PullAsWorker(uint64_t version, uint32_t first = 0, uint32_t count = 2) {
    const Partition part = Part(first, count);
    const Outgoing& answer = Ask(version, holds_.Version(part), first, count);
    EXPECT_TRUE(holds_.Take(part, answer.header, answer.payload.bytes(),
                            std::span(weights_).subspan(part.begin, part.end - part.begin)));
    return answer.header.codec;
  }
  std::vector<float> Master() {
    std::vector<float> all;
    for (uint32_t id : {0u, 1u}) {
      all.insert(all.end(), shard_.weights(id).begin(), shard_.weights(id).end());
    }
    return all;
  }

  HeldWeights holds_;  // weights that a worker holds
  std::vector<float> weights_;
};

TEST_F(ChangesShardTest, BringsAWorkerFromVersionToVersionToTheBitsOfTheWhole) {
  EXPECT_EQ(PullAsWorker(0), Codec::kNone);
  EXPECT_EQ(weights_, Master());
  for (uint64_t clock = 0; clock < 5; ++clock) {
    PushBoth(clock);
    EXPECT_EQ(PullAsWorker(clock + 1), Codec::kChanges);
    EXPECT_LT(sent_.back().payload.size_bytes(), 2 * kSegment * sizeof(float) * 14 / 100);
    EXPECT_EQ(weights_, Whole(clock + 1));
    EXPECT_NE(weights_, Master());
  }
}

TEST_F(ChangesShardTest, AnswersThisVersionAndTheOneBeforeInPartsToo) {
  const std::vector<float> start = Whole(0);
  PushBoth(0);
  PushBoth(1);
  const std::vector<float> before = Whole(1), newest = Whole(2);
  EXPECT_NE(before, newest);
  PullAsWorker(1);  // the worker holds nothing yet
  for (const uint32_t segment : {1u, 0u}) EXPECT_EQ(PullAsWorker(2, segment, 1), Codec::kChanges);
  EXPECT_EQ(weights_, newest);
  // From the start version: changes of both segments.
  std::copy(start.begin(), start.end(), weights_.begin());
  HeldWeights late(table_);
  WireHeader of_start;
  ASSERT_TRUE(late.Take(Part(0, 2), of_start, std::as_bytes(std::span(start)), weights_));
  for (const uint64_t version : {1u, 2u}) {
    const Outgoing& answer = Ask(version, late.Version(Part(0, 2)));
    EXPECT_EQ(answer.header.codec, Codec::kChanges);
    ASSERT_TRUE(late.Take(Part(0, 2), answer.header, answer.payload.bytes(), weights_));
  }
  EXPECT_EQ(weights_, newest);
}

TEST_F(ChangesShardTest, GivesAllOfTheWeightsToWhoHoldsAnotherVersion) {
  PushBoth(0);
  PushBoth(1);
  for (const uint64_t held : {kNoVersion, uint64_t{0}, uint64_t{2}, uint64_t{8}}) {
    EXPECT_EQ(Ask(2, held).header.codec, Codec::kNone) << held;
  }
  EXPECT_EQ(Ask(2, 1).header.codec, Codec::kChanges);
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

TEST_F(ChangesShardTest, KeepsWhatASlowMessageReads) {
  const std::vector<float> start = Whole(0);
  const Outgoing slow = sent_.back();
  for (uint64_t clock = 0; clock < 5; ++clock) PushBoth(clock);
  EXPECT_TRUE(std::equal(start.begin(), start.end(), slow.payload.floats().begin()));
}

TEST_F(ChangesShardTest, AnswersOtherFormatsWithWhatWorkersHold) {
  PushBoth(0);
  const std::vector<float> whole = Whole(1);
  Pull(0, 1);
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), sent_.back().payload.floats().begin()));
}

TEST_F(ChangesShardTest, SendsTheRestOfAChangeThoughAnUpdateIsSkipped) {
  PushBoth(0);
  PullAsWorker(0);
  PullAsWorker(1);
  Push(0, 0, 1);
  Push(0, 1, 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(PullAsWorker(2), Codec::kChanges);
  EXPECT_EQ(weights_, Whole(2));
}

// Another lane has the same segments in a different run, as after a move.
TEST_F(ChangesShardTest, AnotherLaneGoesOnWithTheSameBits) {
  PushBoth(0);
  PullAsWorker(0);
  PullAsWorker(1);
  ShardOptions options = ChangesOptions(0);
  options.view = options.placement = 5;
  options.lane_of_segment = {kLane, kOtherLane, kOtherLane, kLane, kLane, kOtherLane};
  std::vector<Outgoing> sent;
  Shard next(options, table_,
             {.send = [&](Outgoing m) { sent.push_back(std::move(m)); },
              .snapshot = [](const SegmentSnapshot&) {},
              .notice = [](const ShardNotice& n) { ADD_FAILURE() << n.text; }});
  std::vector<float> expected = Whole(1);
  expected.resize(kSegment);
  ASSERT_TRUE(next.InheritFrom(&shard_, now_).ok());
  sent.clear();
  WireHeader pull = Header(MessageKind::kPull, 0);
  pull.view = 5;
  pull.segment_count = 1;
  pull.codec = Codec::kChanges;
  pull.clock = 1;
  pull.version = 0;
  next.OnMessage({pull, Lease()}, now_);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].header.codec, Codec::kNone) << "changes do not move";
  const std::span<const float> whole = sent[0].payload.floats();
  EXPECT_EQ(std::vector<float>(whole.begin(), whole.end()), expected);
}

class WholeShardTest : public ChangesShardTest {
 protected:
  WholeShardTest() : ChangesShardTest(/*interval=*/2) {}
};

TEST_F(WholeShardTest, GivesTheWeightsOfEveryCheckpoint) {
  PullAsWorker(0);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    PushBoth(clock);
    const bool whole = clock % 2 == 1;
    EXPECT_EQ(PullAsWorker(clock + 1), whole ? Codec::kNone : Codec::kChanges);
    EXPECT_EQ(weights_ == Master(), whole);
  }
}

}  // namespace
}  // namespace tug
