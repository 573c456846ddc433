// SPDX-License-Identifier: Apache-2.0
// Answers to pulls: copies by version, bf16, runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "blocks/runs.h"
#include "kernels/bf16.h"
#include "server/shard/shard_test_support.h"

namespace tug {
namespace {

TEST_F(ShardTest, KeepsThePreviousVersionReadableUntilTheNextUpdate) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Pull(0, 0);
  ASSERT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  EXPECT_EQ(sent_.back().header.version, 0u);
  EXPECT_EQ(sent_.back().payload.floats()[0], 0.0f);
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 1);
  Pull(0, 0);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
}

TEST_F(ShardTest, NeverWritesWeightsThatAMessageStillReads) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Pull(0, 1);
  const Outgoing slow = sent_.back();
  const float before = slow.payload.floats()[0];
  for (uint64_t clock = 1; clock < 6; ++clock) {
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  EXPECT_EQ(slow.payload.floats()[0], before);
  EXPECT_NE(shard_.weights(0)[0], before);
}

TEST_F(ShardTest, AnswersAPullOfRunsWithTheirWeights) {
  for (uint32_t e = 0; e < 2 * kSegment; ++e) {
    shard_.weights(e / kSegment)[e % kSegment] = static_cast<float>(e);
  }
  const ElementRuns runs = {{7, 9}, {kSegment - 1, kSegment + 2}};
  const auto list = std::make_shared<std::vector<std::byte>>(EncodedBytes(runs, false));
  EncodeRunList(runs, *list);
  WireHeader header = Header(MessageKind::kPull, 0);
  header.codec = Codec::kRuns;
  const Message pull{header, Lease(list, std::span<const std::byte>(*list))};
  shard_.OnMessage(pull, now_);
  ASSERT_EQ(sent_.size(), 1u);
  const auto expect_values = [&](const Outgoing& answer, const std::vector<float>& values) {
    EXPECT_EQ(answer.header.kind, MessageKind::kWeights);
    EXPECT_EQ(answer.header.codec, Codec::kRuns);
    const auto decoded = DecodeRuns(answer.payload.bytes(), 2 * kSegment, true);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->runs, runs);
    EXPECT_TRUE(std::equal(decoded->values.begin(), decoded->values.end(), values.begin()));
  };
  expect_values(sent_[0], {7, 8, kSegment - 1, kSegment, kSegment + 1});
  sent_.clear();

  Message waiting = pull;  // for the next version
  waiting.header.clock = 1;
  shard_.OnMessage(waiting, now_);
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  ASSERT_EQ(Count(MessageKind::kWeights), 1u);
  expect_values(sent_.back(),
                {shard_.weights(0)[7], shard_.weights(0)[8], shard_.weights(0)[kSegment - 1],
                 shard_.weights(1)[0], shard_.weights(1)[1]});
  shard_.OnMessage(pull, now_);  // the previous version is still available
  expect_values(sent_.back(), {7, 8, kSegment - 1, kSegment, kSegment + 1});

  header.segment_count = 1;
  shard_.OnMessage({header, pull.payload}, now_);  // reaches beyond the segment
  EXPECT_EQ(shard_.counters().malformed, 1u);
}

// Two lanes share a credit of two partitions: this one may have one partition, 2 segments, in
// flight.
class CreditShardTest : public ShardTest {
 protected:
  static constexpr uint64_t kPartitionBytes = 2 * kSegment * sizeof(float);

  CreditShardTest() : ShardTest(MakeOptions()) {}
  static ShardOptions MakeOptions() {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.pull_credit_bytes = 2 * kPartitionBytes;
    return options;
  }
  std::vector<WireHeader> Answers() const {
    std::vector<WireHeader> answers;
    for (const Outgoing& m : sent_) {
      if (m.header.kind == MessageKind::kWeights) answers.push_back(m.header);
    }
    return answers;
  }
  void ReportReceived(const WireHeader& answer, PeerId worker = kWorker) {
    WireHeader header = Header(MessageKind::kWeightsReceived, 0, worker);
    header.ack_id = answer.ack_id;
    Deliver(header);
  }
};

TEST_F(CreditShardTest, AnswersTheMostUrgentBlockNextAsCreditReturns) {
  Pull(1, 0);
  Pull(0, 0);
  ASSERT_EQ(Answers().size(), 1u);
  EXPECT_EQ(Answers()[0].block, 1u);
  EXPECT_NE(Answers()[0].ack_id, 0u);
  Pull(0, 0, WorkerPeer(8));  // each worker has a separate credit
  ASSERT_EQ(Answers().size(), 2u);
  WireHeader unknown = Answers()[0];
  ++unknown.ack_id;
  ReportReceived(unknown);
  EXPECT_EQ(Answers().size(), 2u);
  ReportReceived(Answers()[0]);
  ASSERT_EQ(Answers().size(), 3u);
  EXPECT_EQ(Answers()[2].block, 0u);
  EXPECT_EQ(shard_.counters().peak_answer_bytes, kPartitionBytes);
  EXPECT_EQ(shard_.counters().malformed, 0u);
}

TEST_F(CreditShardTest, AnswersWhatALargerCreditLets) {
  Pull(1, 0);
  Pull(0, 0);
  ASSERT_EQ(Answers().size(), 1u);
  shard_.SetPullCredit(4 * kPartitionBytes, now_);  // shared by two lanes
  ASSERT_EQ(Answers().size(), 2u);
  EXPECT_EQ(Answers()[1].block, 0u);
}

TEST_F(CreditShardTest, AnswersARepeatedPullAgainAndCountsOneThatWaits) {
  Pull(1, 0);
  Pull(0, 0);
  Pull(0, 0);
  EXPECT_EQ(shard_.counters().repeats, 1u);
  Pull(1, 0);  // the answer was lost: its credit goes to block 0 first
  ASSERT_EQ(Answers().size(), 2u);
  EXPECT_EQ(Answers()[1].block, 0u);
  ReportReceived(Answers()[1]);
  ASSERT_EQ(Answers().size(), 3u);
  EXPECT_EQ(Answers()[2].block, 1u);
}

TEST_F(CreditShardTest, TakesBackTheCreditOfAnAnswerThatNothingIsHeardOf) {
  Pull(1, 0);
  Pull(0, 0);
  shard_.OnTick(now_);
  EXPECT_EQ(Answers().size(), 1u);
  now_ += absl::Seconds(2);
  shard_.OnTick(now_);
  EXPECT_EQ(Answers().size(), 2u);
}

TEST_F(CreditShardTest, GivesBackTheCreditOfAPullThatItCannotAnswerAnyMore) {
  Pull(1, 0);
  Pull(0, 0);
  for (uint64_t clock = 0; clock < 2; ++clock) {  // the worker did not wait for these
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  ReportReceived(Answers()[0]);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
  Pull(1, 0);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kWeights);
}

TEST_F(CreditShardTest, RefusesPullsOfMoreWorkersThanTheJobCanHave) {
  for (uint32_t id = 10; id < 15; ++id) Pull(0, 0, WorkerPeer(id));
  EXPECT_EQ(Answers().size(), 4u);  // twice the virtual workers
  EXPECT_EQ(shard_.counters().malformed, 1u);
}

TEST_F(CreditShardTest, AnswersAWorkerThatSharesMemoryAtOnceAndHoldsNoCredit) {
  shares_memory_ = true;
  Pull(1, 0);
  Pull(0, 0);
  ASSERT_EQ(Answers().size(), 2u);
  for (const WireHeader& answer : Answers()) EXPECT_EQ(answer.ack_id, 0u);
  EXPECT_EQ(shard_.counters().peak_answer_bytes, 0u);
}

class Bf16ShardTest : public ShardTest {
 protected:
  Bf16ShardTest() : ShardTest(MakeOptions()) {
    for (uint32_t id : {0u, 1u}) {
      for (uint64_t i = 0; i < kSegment; ++i) {
        shard_.weights(id)[i] = 1.0f + static_cast<float>(i) * 1e-4f;
      }
    }
  }
  static ShardOptions MakeOptions() {
    ShardOptions options = Options(OptimizerConfig::OFF);
    options.pull_format = CommConfig::BF16;
    return options;
  }

  std::vector<kernels::Bf16> Rounded() {
    std::vector<kernels::Bf16> rounded(2 * kSegment);
    for (uint32_t id : {0u, 1u}) {
      kernels::Bf16FromFloat(shard_.weights(id).data(), rounded.data() + id * kSegment, kSegment);
    }
    return rounded;
  }
  std::vector<kernels::Bf16> Pulled(uint64_t version) {
    WireHeader header = Header(MessageKind::kPull, 0);
    header.codec = Codec::kBf16;
    header.clock = version;
    Deliver(header);
    const Outgoing& answer = sent_.back();
    EXPECT_EQ(answer.header.kind, MessageKind::kWeights);
    EXPECT_EQ(answer.header.codec, Codec::kBf16);
    EXPECT_EQ(answer.payload.size_bytes(), 2 * kSegment * sizeof(kernels::Bf16));
    const auto* halves = reinterpret_cast<const kernels::Bf16*>(answer.payload.bytes().data());
    std::vector<kernels::Bf16> pulled(halves, halves + 2 * kSegment);
    sent_.pop_back();
    return pulled;
  }
};

TEST_F(Bf16ShardTest, AnswersThisVersionAndTheOneBeforeRounded) {
  std::vector<kernels::Bf16> before = Rounded();
  EXPECT_EQ(Pulled(0), before);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    Push(0, 0, clock, 0.5f);
    // One of the four updates is skipped.
    Push(0, 1, clock, clock == 2 ? std::numeric_limits<float>::quiet_NaN() : 0.25f);
    const std::vector<kernels::Bf16> now = Rounded();
    EXPECT_EQ(Pulled(clock + 1), now);
    EXPECT_EQ(Pulled(clock), before);
    EXPECT_EQ(now == before, clock == 2);
    before = now;
  }
}

TEST_F(Bf16ShardTest, HasTheSameWeightsAsWithoutAndLeavesSnapshotsAlone) {
  Shard plain(Options(OptimizerConfig::OFF), table_,
              {.send = [](Outgoing) {},
               .snapshot = [](const SegmentSnapshot&) {},
               .notice = [](ShardNotice) {}});
  for (uint32_t id : {0u, 1u}) {
    std::copy(shard_.weights(id).begin(), shard_.weights(id).end(), plain.weights(id).begin());
  }
  for (uint64_t clock = 0; clock < 5; ++clock) {
    for (uint32_t vw : {0u, 1u}) {
      Push(0, vw, clock, 0.5f);
      const auto gradient = std::make_shared<std::vector<float>>(2 * kSegment, 0.5f);
      plain.OnMessage(
          {PushHeader(0, vw, clock), Lease(gradient, std::span<const float>(*gradient))}, now_);
    }
    for (uint32_t id : {0u, 1u}) {
      EXPECT_TRUE(std::equal(shard_.weights(id).begin(), shard_.weights(id).end(),
                             plain.weights(id).begin()));
    }
  }
  ASSERT_EQ(snapshot_weights_.size(), 4u);  // two segments at versions 2 and 4
  for (const auto& [lease, copy] : snapshot_weights_) {
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), lease.floats().begin()));
  }
}

TEST_F(Bf16ShardTest, NeverWritesRoundedWeightsThatAMessageStillReads) {
  WireHeader header = Header(MessageKind::kPull, 0);
  header.codec = Codec::kBf16;
  Deliver(header);
  const Outgoing slow = sent_.back();
  const std::vector<std::byte> before(slow.payload.bytes().begin(), slow.payload.bytes().end());
  for (uint64_t clock = 0; clock < 5; ++clock) {
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), slow.payload.bytes().begin()));
}

TEST_F(Bf16ShardTest, GivesFullWeightsOfTheNewestVersionOnly) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Pull(0, 1);
  ASSERT_EQ(sent_.back().header.kind, MessageKind::kWeights);
  EXPECT_EQ(sent_.back().payload.floats()[kSegment], shard_.weights(1)[0]);
  Pull(0, 0);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kRefused);
}

}  // namespace
}  // namespace tug
