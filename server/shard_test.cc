#include "server/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "exchange/runs.h"
#include "kernels/bf16.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;
constexpr uint32_t kLane = 300;
constexpr uint32_t kOtherLane = 301;
constexpr PeerId kWorker = WorkerPeer(7);

SegmentTable Table() {
  BlockTable blocks;
  for (int b = 0; b < 2; ++b) {
    TensorSpec* tensor = blocks.add_blocks()->add_tensors();
    tensor->add_shape(3 * kSegment);
    tensor->set_weight_decay(true);
  }
  return *SegmentTable::Create(blocks, kSegment);
}

// A lane that owns all but the last segment of each block (that is the other lane's), two virtual
// workers.
class ShardTest : public testing::Test {
 protected:
  explicit ShardTest(OptimizerConfig::Clip clip = OptimizerConfig::OFF)
      : ShardTest(Options(clip)) {}
  explicit ShardTest(const ShardOptions& options)
      : table_(Table()),
        shard_(options, table_,
               {.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
                .snapshot =
                    [this](const SegmentSnapshot& s) {
                      snapshots_.push_back(s.segment);
                      const std::span<const float> weights = s.weights.floats();
                      snapshot_weights_.emplace_back(
                          s.weights, std::vector<float>(weights.begin(), weights.end()));
                    },
                .notice = [this](ShardNotice n) { notices_.push_back(std::move(n)); }}) {}

  static ShardOptions Options(OptimizerConfig::Clip clip) {
    ShardOptions options;
    options.lane = kLane;
    options.job = 9;
    options.timeline = 1;
    options.view = 4;
    options.virtual_workers = 2;
    options.optimizer.set_learning_rate(0.1);
    options.optimizer.set_min_learning_rate(0.1);
    options.optimizer.set_decay_steps(10);
    options.optimizer.set_clip(clip);
    options.optimizer.set_clip_norm(1.0);
    options.optimizer.mutable_adamw()->set_beta1(0.9);
    options.optimizer.mutable_adamw()->set_beta2(0.99);
    options.optimizer.mutable_adamw()->set_epsilon(1e-8);
    options.lane_of_segment = {kLane, kLane, kOtherLane, kLane, kLane, kOtherLane};
    options.block_names = {"first", "second"};
    options.checkpoint_interval = 2;
    options.resend_after = absl::Seconds(1);
    return options;
  }

  static WireHeader Header(MessageKind kind, uint32_t block, PeerId sender = kWorker) {
    WireHeader header;
    header.kind = kind;
    header.job = 9;
    header.timeline = 1;
    header.view = 4;
    header.block = block;
    header.segment_count = 2;
    header.sender = sender;
    return header;
  }
  static WireHeader PushHeader(uint32_t block, uint32_t virtual_worker, uint64_t clock) {
    WireHeader header = Header(MessageKind::kPush, block);
    header.virtual_worker = virtual_worker;
    header.virtual_worker_count = 1;
    header.clock = clock;
    header.token_count = 50;
    return header;
  }
  void Deliver(WireHeader header, std::vector<float> payload = {}) {
    auto owner = std::make_shared<std::vector<float>>(std::move(payload));
    header.payload_bytes = owner->size() * sizeof(float);
    shard_.OnMessage({header, Lease(owner, std::span<const float>(*owner))}, now_);
  }
  void Push(uint32_t block, uint32_t virtual_worker, uint64_t clock, float value = 1.0f) {
    Deliver(PushHeader(block, virtual_worker, clock), std::vector<float>(2 * kSegment, value));
  }
  void Pull(uint32_t block, uint64_t version, PeerId sender = kWorker) {
    WireHeader header = Header(MessageKind::kPull, block, sender);
    header.version = version;
    Deliver(header);
  }
  size_t Count(MessageKind kind) const {
    return static_cast<size_t>(std::count_if(
        sent_.begin(), sent_.end(), [&](const Outgoing& m) { return m.header.kind == kind; }));
  }

  SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Outgoing> sent_;
  std::vector<uint32_t> snapshots_;
  std::vector<std::pair<Lease, std::vector<float>>> snapshot_weights_;  // and a copy of then
  std::vector<ShardNotice> notices_;
  Shard shard_;
};

TEST_F(ShardTest, ClosesAClockWhenAllVirtualWorkersHavePushedAndAnswersTheWaitingPull) {
  Push(0, 1, 0);
  EXPECT_EQ(Count(MessageKind::kReceived), 1u);
  Pull(0, 1);
  EXPECT_EQ(Count(MessageKind::kWeights), 0u);
  Push(0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kReceived), 1u);  // committed at once: that says it
  EXPECT_EQ(Count(MessageKind::kCommitted), 2u);
  ASSERT_EQ(Count(MessageKind::kWeights), 1u);
  EXPECT_EQ(sent_.back().header.version, 1u);
  EXPECT_EQ(sent_.back().payload.size_bytes(), 2 * kSegment * sizeof(float));
  EXPECT_LT(sent_.back().payload.floats()[0], 0.0f);  // a step against the gradient, from 0
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.version(3), 0u);
}

TEST_F(ShardTest, AcknowledgesARepeatWithoutApplyingIt) {
  Push(0, 0, 0);
  Push(0, 0, 0);
  EXPECT_EQ(Count(MessageKind::kReceived), 2u);
  EXPECT_EQ(shard_.version(0), 0u);
  Push(0, 1, 0);
  EXPECT_EQ(shard_.version(0), 1u);
  Push(0, 0, 0);  // long committed
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(sent_.back().header.kind, MessageKind::kCommitted);
  EXPECT_EQ(sent_.back().header.version, 1u);
  EXPECT_EQ(shard_.counters().repeats, 2u);
}

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

TEST_F(ShardTest, RefusesAnOlderViewRetriablyAndSaysTheCurrentOne) {
  WireHeader header = PushHeader(0, 0, 0);
  header.view = 3;
  Deliver(header, std::vector<float>(2 * kSegment));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].header.kind, MessageKind::kRefused);
  EXPECT_EQ(sent_[0].header.view, 4u);
  EXPECT_EQ(shard_.counters().refused, 1u);
  header = PushHeader(0, 0, 0);
  header.timeline = 0;
  Deliver(header, std::vector<float>(2 * kSegment));
  EXPECT_EQ(shard_.counters().refused, 2u);
}

TEST_F(ShardTest, CountsAndDropsWhatMakesNoSense) {
  const std::vector<float> right(2 * kSegment);
  uint64_t bad = 0;
  const auto expect_dropped = [&](WireHeader header, const std::vector<float>& payload) {
    Deliver(header, payload);
    EXPECT_EQ(shard_.counters().malformed, ++bad);
    EXPECT_TRUE(sent_.empty());
  };
  WireHeader header = PushHeader(0, 0, 0);
  expect_dropped(header, std::vector<float>(2 * kSegment - 1));  // short payload
  header.block = 2;
  expect_dropped(header, right);  // no such block
  header = PushHeader(0, 0, 0);
  header.first_segment = 1;
  expect_dropped(header, right);  // reaches into the other lane's
  header.first_segment = 0xffffffffu;
  expect_dropped(header, right);
  header = PushHeader(0, 0, 0);
  header.segment_count = 0;
  expect_dropped(header, {});
  header = PushHeader(0, 2, 0);
  expect_dropped(header, right);  // no such virtual worker
  header = PushHeader(0, 0, 0);
  header.virtual_worker_count = 3;
  expect_dropped(header, right);
  expect_dropped(PushHeader(0, 0, 5), right);  // a clock nobody can have reached
  header = PushHeader(0, 0, 0);
  header.token_count = 0;
  expect_dropped(header, right);
  header = PushHeader(0, 0, 0);
  header.job = 8;
  expect_dropped(header, right);  // another job
  header = PushHeader(0, 0, 0);
  header.sender = LanePeer(kOtherLane);
  expect_dropped(header, right);  // lanes do not push
  header = Header(MessageKind::kPull, 0);
  header.version = 2;
  expect_dropped(header, {});  // two updates ahead
  expect_dropped(Header(MessageKind::kWeights, 0), right);
  expect_dropped(Header(MessageKind::kNorms, 0, LanePeer(kOtherLane)), right);  // clip: off
}

TEST_F(ShardTest, RemembersNoMorePushesAndPullsThanVirtualWorkersCanHaveOpen) {
  constexpr uint32_t kSenders = 100;  // more than 2 x 2 virtual workers x 3 segments
  for (uint32_t sender = 0; sender < kSenders; ++sender) {
    WireHeader header = PushHeader(0, 0, 0);
    header.sender = WorkerPeer(sender);
    Deliver(header, std::vector<float>(2 * kSegment, 1.0f));
    Pull(0, 1, WorkerPeer(sender));
  }
  EXPECT_EQ(Count(MessageKind::kReceived), 12u);
  EXPECT_EQ(shard_.counters().malformed, 2 * (kSenders - 12u));
  sent_.clear();
  Push(0, 1, 0);
  EXPECT_EQ(Count(MessageKind::kCommitted), 0u);  // refused too: the block is full
}

TEST_F(ShardTest, SurvivesRandomHeaders) {
  std::mt19937 random(20261121);
  for (int i = 0; i < 20000; ++i) {
    WireHeader header;
    header.kind = static_cast<MessageKind>(1 + random() % 11);
    header.codec = static_cast<Codec>(random() % 3);
    header.job = random() % 8 == 0 ? random() : 9;
    header.timeline = 1;
    header.view = 4;
    header.block = random() % 4 == 0 ? random() : random() % 3;
    header.first_segment = random() % 4 == 0 ? random() : random() % 4;
    header.segment_count = random() % 4 == 0 ? random() : random() % 4;
    header.virtual_worker = random() % 4 == 0 ? random() : random() % 3;
    header.virtual_worker_count = static_cast<uint16_t>(random() % 4);
    header.clock = random() % 3;
    header.version = random() % 3;
    header.want = static_cast<Want>(random() % 2);
    header.token_count = random() % 3;
    header.sender = random() % 2 == 0 ? kWorker : LanePeer(kOtherLane);
    Deliver(header, std::vector<float>(random() % 4 * kSegment));
    sent_.clear();
  }
}

TEST_F(ShardTest, TakesSnapshotsAtTheIntervalAndAtTheFinalVersionOnce) {
  for (uint64_t clock = 0; clock < 3; ++clock) {
    for (uint32_t vw : {0u, 1u}) Push(0, vw, clock);
  }
  EXPECT_EQ(snapshots_, (std::vector<uint32_t>{0, 1}));  // version 2
  shard_.SetFinalVersion(3);
  EXPECT_EQ(snapshots_, (std::vector<uint32_t>{0, 1, 0, 1}));
  shard_.SetFinalVersion(3);
  EXPECT_EQ(snapshots_.size(), 4u);
}

TEST_F(ShardTest, TakesRunsForADensePushWithZeros) {
  const ElementRuns runs = {{10, 20}, {kSegment - 3, kSegment + 5}};
  std::vector<float> dense(2 * kSegment);
  for (const ElementRun& run : runs) {
    for (uint32_t e = run.begin; e < run.end; ++e) dense[e] = 0.25f * static_cast<float>(e);
  }
  const auto payload = std::make_shared<std::vector<std::byte>>(EncodedBytes(runs, true));
  EncodeRuns(runs, dense, *payload);
  WireHeader header = PushHeader(0, 0, 0);
  header.codec = Codec::kRuns;
  shard_.OnMessage({header, Lease(payload, std::span<const std::byte>(*payload))}, now_);
  Push(0, 1, 0);
  Deliver(PushHeader(1, 0, 0), dense);
  Push(1, 1, 0);
  ASSERT_EQ(shard_.version(0), 1u);
  ASSERT_EQ(shard_.version(3), 1u);
  for (uint32_t id : {0u, 1u}) {
    EXPECT_TRUE(std::equal(shard_.weights(id).begin(), shard_.weights(id).end(),
                           shard_.weights(id + 3).begin()));
  }
  header.clock = 1;  // one byte short
  shard_.OnMessage(
      {header, Lease(payload, std::span<const std::byte>(*payload).first(payload->size() - 1))},
      now_);
  EXPECT_EQ(shard_.counters().malformed, 1u);
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

  Message waiting = pull;  // of the next version
  waiting.header.version = 1;
  shard_.OnMessage(waiting, now_);
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  ASSERT_EQ(Count(MessageKind::kWeights), 1u);
  expect_values(sent_.back(),
                {shard_.weights(0)[7], shard_.weights(0)[8], shard_.weights(0)[kSegment - 1],
                 shard_.weights(1)[0], shard_.weights(1)[1]});
  shard_.OnMessage(pull, now_);  // the version before is still to be had
  expect_values(sent_.back(), {7, 8, kSegment - 1, kSegment, kSegment + 1});

  header.segment_count = 1;
  shard_.OnMessage({header, pull.payload}, now_);  // reaches beyond the segment
  EXPECT_EQ(shard_.counters().malformed, 1u);
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

  std::vector<uint16_t> Rounded() {
    std::vector<uint16_t> rounded(2 * kSegment);
    for (uint32_t id : {0u, 1u}) {
      kernels::Bf16FromFloat(shard_.weights(id).data(), rounded.data() + id * kSegment, kSegment);
    }
    return rounded;
  }
  std::vector<uint16_t> Pulled(uint64_t version) {
    WireHeader header = Header(MessageKind::kPull, 0);
    header.codec = Codec::kBf16;
    header.version = version;
    Deliver(header);
    const Outgoing& answer = sent_.back();
    EXPECT_EQ(answer.header.kind, MessageKind::kWeights);
    EXPECT_EQ(answer.header.codec, Codec::kBf16);
    EXPECT_EQ(answer.payload.size_bytes(), 2 * kSegment * sizeof(uint16_t));
    const auto* halves = reinterpret_cast<const uint16_t*>(answer.payload.bytes().data());
    std::vector<uint16_t> pulled(halves, halves + 2 * kSegment);
    sent_.pop_back();
    return pulled;
  }
};

TEST_F(Bf16ShardTest, AnswersThisVersionAndTheOneBeforeRounded) {
  std::vector<uint16_t> before = Rounded();
  EXPECT_EQ(Pulled(0), before);
  for (uint64_t clock = 0; clock < 4; ++clock) {
    Push(0, 0, clock, 0.5f);
    // One update of the four is skipped.
    Push(0, 1, clock, clock == 2 ? std::numeric_limits<float>::quiet_NaN() : 0.25f);
    const std::vector<uint16_t> now = Rounded();
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

class GlobalClipShardTest : public ShardTest {
 protected:
  GlobalClipShardTest() : ShardTest(OptimizerConfig::GLOBAL) {}

  void NormsFromOtherLane(uint64_t clock, double sum_of_squares) {
    const std::vector<NormEntry> entries(2, {sum_of_squares, NormEntry::kAllFinite, 0});
    WireHeader header = Header(MessageKind::kNorms, NormLedger::kAllBlocks, LanePeer(kOtherLane));
    header.clock = clock;
    auto owner = std::make_shared<std::vector<NormEntry>>(entries);
    shard_.OnMessage({header, Lease(owner, std::as_bytes(std::span(*owner)))}, now_);
  }
};

TEST_F(GlobalClipShardTest, ClosesNothingBeforeEveryLanesNormsAreIn) {
  for (uint32_t block : {0u, 1u}) {
    for (uint32_t vw : {0u, 1u}) Push(block, vw, 0);
  }
  EXPECT_EQ(Count(MessageKind::kCommitted), 0u);
  EXPECT_EQ(Count(MessageKind::kNorms), 1u);
  NormsFromOtherLane(0, 1.0);
  EXPECT_EQ(Count(MessageKind::kCommitted), 4u);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.version(4), 1u);
}

TEST_F(GlobalClipShardTest, AsksAgainForNormsThatDoNotComeAndAnswersWhoAsks) {
  for (uint32_t block : {0u, 1u}) {
    for (uint32_t vw : {0u, 1u}) Push(block, vw, 0);
  }
  shard_.OnTick(now_ + absl::Milliseconds(999));
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 0u);
  shard_.OnTick(now_ + absl::Seconds(1));
  EXPECT_EQ(Count(MessageKind::kNormsWanted), 1u);
  NormsFromOtherLane(0, 1.0);
  WireHeader wanted =
      Header(MessageKind::kNormsWanted, NormLedger::kAllBlocks, LanePeer(kOtherLane));
  Deliver(wanted);  // of the clock before the open one
  EXPECT_EQ(Count(MessageKind::kNorms), 2u);
  EXPECT_EQ(sent_.back().header.clock, 0u);
}

TEST_F(GlobalClipShardTest, SkipsTheWholeUpdateAndNamesBlockAndVirtualWorker) {
  for (uint32_t vw : {0u, 1u}) Push(0, vw, 0);
  Push(1, 0, 0);
  Push(1, 1, 0, std::numeric_limits<float>::infinity());
  NormsFromOtherLane(0, 1.0);
  EXPECT_EQ(shard_.version(0), 1u);
  EXPECT_EQ(shard_.weights(0)[0], 0.0f);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].text.find("block second from virtual worker 1"), std::string::npos)
      << notices_[0].text;
}

}  // namespace
}  // namespace tug
