// SPDX-License-Identifier: Apache-2.0
// int8 pulls: encoded copies that a lane keeps, and its answers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "blocks/runs.h"
#include "compression/dense/int8.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

constexpr size_t kSegmentBytes = Int8Bytes(kSegment);

class Int8ShardTest : public ShardTest {
 protected:
  explicit Int8ShardTest(SyncConfig::Policy policy = SyncConfig::BSP)
      : ShardTest(Int8Options(policy)), update_per_push_(policy == SyncConfig::ASP) {
    for (uint32_t id : {0u, 1u}) {
      for (uint64_t i = 0; i < kSegment; ++i) {
        shard_.weights(id)[i] = static_cast<float>(id + 1) - static_cast<float>(i) * 1e-4f;
      }
    }
  }

  static ShardOptions Int8Options(SyncConfig::Policy policy) {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.sync.set_policy(policy);
    options.pull_format = CommConfig::INT8;
    return options;
  }

  // Both segments of block 0, encoded one after the other.
  std::vector<std::byte> Encoded() {
    std::vector<std::byte> encoded(2 * kSegmentBytes);
    for (uint32_t id : {0u, 1u}) {
      EncodeInt8Weights(shard_.weights(id),
                        std::span(encoded).subspan(id * kSegmentBytes, kSegmentBytes));
    }
    return encoded;
  }
  std::vector<std::byte> Pulled(uint64_t version, uint32_t first = 0, uint32_t count = 2) {
    WireHeader header = Header(MessageKind::kPull, 0);
    header.codec = Codec::kInt8;
    header.clock = version;
    header.first_segment = first;
    header.segment_count = count;
    header.virtual_worker_count = 1;
    if (update_per_push_) header.want = Want::kAtLeast;
    Deliver(header);
    const Outgoing& answer = sent_.back();
    EXPECT_EQ(answer.header.kind, MessageKind::kWeights);
    EXPECT_EQ(answer.header.codec, Codec::kInt8);
    return {answer.payload.bytes().begin(), answer.payload.bytes().end()};
  }

  const bool update_per_push_;
};

TEST_F(Int8ShardTest, AnswersThisVersionAndTheOneBeforeEncoded) {
  std::vector<std::byte> before = Encoded();
  EXPECT_EQ(Pulled(0), before);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    Push(0, 0, clock, 0.5f);
    // One of the four updates is skipped.
    Push(0, 1, clock, clock == 2 ? std::numeric_limits<float>::quiet_NaN() : 0.25f);
    const std::vector<std::byte> now = Encoded();
    EXPECT_EQ(Pulled(clock + 1), now);
    EXPECT_EQ(Pulled(clock), before);
    EXPECT_EQ(now == before, clock == 2);
    const std::vector<std::byte> last(now.begin() + kSegmentBytes, now.end());
    EXPECT_EQ(Pulled(clock + 1, 1, 1), last);
    before = now;
  }
}

TEST_F(Int8ShardTest, NeverWritesEncodedWeightsThatAMessageStillReads) {
  const std::vector<std::byte> before = Pulled(0);
  const Outgoing slow = sent_.back();
  for (uint64_t clock = 0; clock < 5; ++clock) {
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), slow.payload.bytes().begin()));
  EXPECT_NE(Encoded(), before);
}

TEST_F(Int8ShardTest, GivesFullWeightsOfTheNewestVersionOnly) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Pull(0, 1);
  ASSERT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  EXPECT_EQ(sent_.back().payload.floats()[kSegment], shard_.weights(1)[0]);
  Pull(0, 0);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
}

TEST_F(Int8ShardTest, AnswersAPullOfRunsAsAWholeOneDecodes) {
  const ElementRuns runs = {{7, 9}, {kSegment - 1, kSegment + 2}};
  const auto list = std::make_shared<std::vector<std::byte>>(EncodedBytes(runs, false));
  EncodeRunList(runs, *list);
  WireHeader header = Header(MessageKind::kPull, 0);
  header.codec = Codec::kRuns;
  shard_.OnMessage({header, Lease(list, std::span<const std::byte>(*list))}, now_);
  const auto decoded = DecodeRuns(sent_.back().payload.bytes(), 2 * kSegment, true);
  ASSERT_TRUE(decoded.has_value());
  const std::vector<std::byte> encoded = Pulled(0);
  std::vector<float> whole(2 * kSegment);
  for (uint32_t id : {0u, 1u}) {
    DecodeInt8Weights(std::span(encoded).subspan(id * kSegmentBytes, kSegmentBytes),
                      std::span(whole).subspan(id * kSegment, kSegment));
  }
  const std::vector<float> expected = {whole[7], whole[8], whole[kSegment - 1], whole[kSegment],
                                       whole[kSegment + 1]};
  EXPECT_EQ(std::vector<float>(decoded->values.begin(), decoded->values.end()), expected);
  EXPECT_NE(whole[8], shard_.weights(0)[8]);
}

TEST_F(Int8ShardTest, GivesNaNsForAGroupWhoseWeightsAreNotFinite) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  shard_.weights(0)[300] = std::numeric_limits<float>::infinity();  // the next update keeps it
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 1);
  const std::vector<std::byte> encoded = Pulled(2, 0, 1);
  std::vector<float> decoded(kSegment);
  DecodeInt8Weights(encoded, decoded);
  for (size_t i = 0; i < kSegment; ++i) {
    ASSERT_EQ(std::isnan(decoded[i]), i / kInt8Group == 300 / kInt8Group) << i;
  }
}

TEST_F(Int8ShardTest, RefusesToAnswerInTheFormatOfPushes) {
  WireHeader header = Header(MessageKind::kPull, 0);
  header.codec = Codec::kFrames;
  Deliver(header);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(shard_.counters().malformed, 1u);
}

class Int8UpdateTest : public Int8ShardTest {
 protected:
  Int8UpdateTest() : Int8ShardTest(SyncConfig::ASP) {}
};

TEST_F(Int8UpdateTest, EncodesWhatItAnswersWithWhereEveryPushIsAnUpdate) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    Push(0, 0, clock, 0.5f);
    EXPECT_EQ(Pulled(clock + 1), Encoded()) << clock;
  }
}

}  // namespace
}  // namespace tug
