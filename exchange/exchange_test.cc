#include "exchange/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/bf16.h"

namespace tug {
namespace {

constexpr uint64_t kSegment = 4096;

SegmentTable Table() {
  BlockTable blocks;
  for (int b = 0; b < 3; ++b) blocks.add_blocks()->add_tensors()->add_shape(3 * kSegment);
  return *SegmentTable::Create(blocks, kSegment);
}

// An exchange over two lanes, segments dealt round, one segment a partition.
class ExchangeTest : public testing::Test {
 protected:
  explicit ExchangeTest(CommConfig::Scheduler scheduler = CommConfig::BYTESCHEDULER,
                        CommConfig::Format format = CommConfig::FP32)
      : table_(Table()), exchange_(Options(scheduler, format), table_, Sinks()) {}

  ExchangeOptions Options(CommConfig::Scheduler scheduler, CommConfig::Format format) {
    ExchangeOptions options;
    options.job = 9;
    options.timeline = 1;
    options.view = 1;
    for (uint32_t id = 0; id < table_.size(); ++id) options.lane_of_segment.push_back(id % 2);
    options.comm.set_partition_bytes(kSegment * sizeof(float));
    options.comm.set_credit_bytes(4 * kSegment * sizeof(float));
    options.comm.set_scheduler(scheduler);
    options.comm.set_resend_ms(1000);
    options.comm.set_push_format(format);
    options.comm.set_pull_format(format);
    return options;
  }
  ExchangeSinks Sinks() {
    return {.send = [this](Outgoing m) { sent_.push_back(std::move(m)); },
            .pulled = [this](BlockPulled e) { pulled_.push_back(e); },
            .committed = [this](PushCommitted e) { committed_.push_back(e); }};
  }

  // Element e of the gradient is e + 1, but 0 outside the runs, if there are any.
  void Push(uint32_t block, uint64_t clock = 0, const ElementRuns& runs = {}) {
    auto gradient = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    for (const ElementRun& run : runs.empty() ? ElementRuns{{0, 3 * kSegment}} : runs) {
      for (uint32_t e = run.begin; e < run.end; ++e) gradient->floats()[e] = 1.0f + e;
    }
    exchange_.Push(
        {block, 5, 1, clock, 100, Lease(gradient, std::as_const(*gradient).floats()), runs}, now_);
  }
  // Answers a pull from `memory`, which is shared and begins with the block's first element.
  void AnswerInPlace(const Outgoing& to, const Lease& memory, Home home = Home::kSender) {
    Message message{to.header, Lease(), home};
    message.header.kind = MessageKind::kWeights;
    message.header.sender = to.to;
    const size_t size_bytes =
        kSegment * (to.header.codec == Codec::kBf16 ? sizeof(kernels::Bf16) : sizeof(float));
    message.payload = memory.Slice(to.header.first_segment * size_bytes, size_bytes);
    exchange_.OnMessage(message, now_);
  }
  static Lease SharedWeights() {
    auto memory = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    std::iota(memory->floats().begin(), memory->floats().end(), 0.5f);
    return Lease(memory, std::as_const(*memory).floats());
  }
  // The lane's answer to a message that was sent.
  void Answer(const Outgoing& to, MessageKind kind, std::vector<float> weights = {}) {
    Message message{to.header, Lease()};
    message.header.kind = kind;
    message.header.sender = to.to;
    if (!weights.empty()) {
      auto owner = std::make_shared<std::vector<float>>(std::move(weights));
      message.payload = Lease(owner, std::span<const float>(*owner));
    }
    exchange_.OnMessage(message, now_);
  }

  SegmentTable table_;
  absl::Time now_ = absl::UnixEpoch();
  std::vector<Outgoing> sent_;
  std::vector<BlockPulled> pulled_;
  std::vector<PushCommitted> committed_;
  std::vector<float> destination_ = std::vector<float>(3 * kSegment, -1.0f);
  Exchange exchange_;
};

TEST_F(ExchangeTest, SendsPartitionsToTheLanesThatOwnThemWithinTheCredit) {
  Push(2);
  Push(1);
  ASSERT_EQ(sent_.size(), 4u);
  EXPECT_EQ(sent_[0].to, LanePeer(0));
  EXPECT_EQ(sent_[0].header.block, 2u);
  EXPECT_EQ(sent_[1].to, LanePeer(1));
  EXPECT_EQ(sent_[0].payload.size_bytes(), kSegment * sizeof(float));
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.size(), 5u);
}

TEST_F(ExchangeTest, LetsAnEarlierBlockOvertakeWhatWaits) {
  Push(2);
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.back().header.block, 0u);
}

class FifoExchangeTest : public ExchangeTest {
 protected:
  FifoExchangeTest() : ExchangeTest(CommConfig::FIFO) {}
};

TEST_F(FifoExchangeTest, SendsInTheOrderOfCompletion) {
  Push(2);
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(sent_.back().header.block, 1u);
}

class PriorityExchangeTest : public ExchangeTest {
 protected:
  PriorityExchangeTest() : ExchangeTest(CommConfig::PRIORITY) {}
};

TEST_F(PriorityExchangeTest, SendsTheBlockThatHasBegunToItsEndThenTheMostUrgent) {
  Push(2);
  Push(1);  // its first partition takes the rest of the credit
  Push(0);
  for (size_t i = 0; i < 5; ++i) Answer(sent_[i], MessageKind::kReceived);
  ASSERT_EQ(sent_.size(), 9u);
  const uint32_t expected[] = {2, 2, 2, 1, 1, 1, 0, 0, 0};
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(sent_[i].header.block, expected[i]) << i;
}

TEST_F(ExchangeTest, MeasuresTheMostBytesThatAreOnTheirWay) {
  Push(2);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 3 * kSegment * sizeof(float));
  Push(1);
  Push(0);
  Answer(sent_[0], MessageKind::kReceived);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
}

TEST_F(ExchangeTest, TakesBackAPartitionThatItsFirstSendingBroughtAfterAll) {
  Push(2);
  Push(1);
  Answer(sent_[0], MessageKind::kDeferred);
  Answer(sent_[0], MessageKind::kPushWanted);  // waits for credit
  Answer(sent_[0], MessageKind::kReceived);    // of a repeat that was stored
  for (size_t i = 1; i < 5; ++i) Answer(sent_[i], MessageKind::kReceived);
  EXPECT_EQ(sent_.size(), 6u) << "not a seventh";
}

TEST_F(ExchangeTest, ReportsAPushOnceAllPartitionsAreCommitted) {
  Push(0);
  for (int i = 0; i < 3; ++i) Answer(sent_[i], MessageKind::kReceived);
  for (int i = 0; i < 2; ++i) Answer(sent_[i], MessageKind::kCommitted);
  Answer(sent_[0], MessageKind::kCommitted);  // a repeat
  EXPECT_TRUE(committed_.empty());
  Answer(sent_[2], MessageKind::kCommitted);
  ASSERT_EQ(committed_.size(), 1u);
  EXPECT_EQ(committed_[0].virtual_worker, 5u);
  EXPECT_EQ(exchange_.open_pushes(), 0u);
}

TEST_F(ExchangeTest, TakesCommittedForReceivedWhenThatWasLost) {
  Push(2);
  Push(1);
  Answer(sent_[0], MessageKind::kCommitted);
  EXPECT_EQ(sent_.size(), 5u);
  Answer(sent_[0], MessageKind::kReceived);  // arrives late: gives no credit twice
  EXPECT_EQ(sent_.size(), 5u);
}

TEST_F(ExchangeTest, WritesWeightsWhereTheyBelongAndReportsTheBlockWhenWhole) {
  std::vector<float> destination(3 * kSegment, -1.0f);
  exchange_.Pull({1, Want::kExact, 7, destination}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  Answer(sent_[2], MessageKind::kWeights, std::vector<float>(kSegment, 3.0f));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment, 1.0f));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment, 9.0f));  // a repeat
  EXPECT_TRUE(pulled_.empty());
  Answer(sent_[1], MessageKind::kWeights, std::vector<float>(kSegment, 2.0f));
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].version, 7u);
  EXPECT_EQ(destination[0], 1.0f);
  EXPECT_EQ(destination[kSegment], 2.0f);
  EXPECT_EQ(destination[3 * kSegment - 1], 3.0f);
}

TEST_F(ExchangeTest, SaysOfNumberedWeightsThatTheyHaveComeWantedOrNot) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  const std::vector<Outgoing> pulls = std::exchange(sent_, {});
  Answer(pulls[0], MessageKind::kWeights, std::vector<float>(kSegment));  // without a number
  EXPECT_TRUE(sent_.empty());
  Outgoing numbered = pulls[1];
  numbered.header.clock = 77;
  Answer(numbered, MessageKind::kWeights, std::vector<float>(kSegment));
  Answer(numbered, MessageKind::kWeights, std::vector<float>(kSegment));  // late: not wanted
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  ASSERT_EQ(sent_.size(), 2u);
  for (const Outgoing& word : sent_) {
    EXPECT_EQ(word.to, pulls[1].to);
    EXPECT_EQ(word.header.kind, MessageKind::kWeightsReceived);
    EXPECT_EQ(word.header.clock, 77u);
    EXPECT_EQ(word.header.job, 9u);
    EXPECT_TRUE(word.payload.bytes().empty());
  }
}

TEST_F(ExchangeTest, IgnoresWeightsOfAnotherVersionLengthLaneOrView) {
  std::vector<float> destination(3 * kSegment);
  exchange_.Pull({1, Want::kExact, 7, destination}, now_);
  Outgoing wrong = sent_[0];
  wrong.header.version = 6;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  Answer(sent_[0], MessageKind::kWeights, std::vector<float>(kSegment - 1));
  wrong = sent_[0];
  wrong.to = LanePeer(0);
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  wrong = sent_[0];
  wrong.header.view = 2;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  wrong = sent_[0];
  wrong.header.block = 1000;
  Answer(wrong, MessageKind::kWeights, std::vector<float>(kSegment));
  EXPECT_EQ(exchange_.counters().ignored, 5u);
  EXPECT_EQ(exchange_.counters().pulled_bytes, 0u);
}

TEST_F(ExchangeTest, CountsARefusalWhichBearsTheViewOfTheLane) {
  Push(0);
  sent_[0].header.view = 2;
  Answer(sent_[0], MessageKind::kRefused);
  EXPECT_EQ(exchange_.counters().refused, 1u);
  EXPECT_EQ(exchange_.counters().ignored, 0u);
}

TEST_F(ExchangeTest, SendsAgainWhatIsNotAnsweredInTime) {
  Push(0);
  std::vector<float> destination(3 * kSegment);
  exchange_.Pull({0, Want::kExact, 1, destination}, now_);
  const size_t before = sent_.size();
  now_ += absl::Milliseconds(999);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), before);
  now_ += absl::Milliseconds(1);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), 2 * before);
  exchange_.OnTick(now_);
  EXPECT_EQ(sent_.size(), 2 * before);
}

TEST_F(ExchangeTest, RepeatsAPushThatWaitsForAStragglerEverMoreRarely) {
  Push(0);
  for (int i = 0; i < 3; ++i) Answer(sent_[i], MessageKind::kReceived);
  std::vector<int> seconds;
  for (int second = 1; second <= 40; ++second) {
    const size_t before = sent_.size();
    now_ += absl::Seconds(1);
    exchange_.OnTick(now_);
    if (sent_.size() > before) seconds.push_back(second);
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15, 31}));
}

TEST_F(ExchangeTest, SendsADeferredPushAgainWhenItIsWanted) {
  Push(2);
  Push(1);  // 4 of 6 partitions fit the credit
  ASSERT_EQ(sent_.size(), 4u);
  Answer(sent_[0], MessageKind::kDeferred);
  EXPECT_EQ(sent_.size(), 5u);  // its credit is another's
  EXPECT_EQ(sent_.back().header.block, 1u);
  Answer(sent_[0], MessageKind::kPushWanted);
  Answer(sent_[0], MessageKind::kPushWanted);  // a repeat
  EXPECT_EQ(sent_.size(), 5u);                 // waits for credit
  Answer(sent_[1], MessageKind::kReceived);
  Answer(sent_[2], MessageKind::kReceived);
  ASSERT_EQ(sent_.size(), 7u);
  EXPECT_EQ(sent_[5].header.block, 1u);  // which goes by priority
  EXPECT_EQ(sent_[6].header.block, 2u);
  EXPECT_EQ(sent_[6].header, sent_[0].header);
  EXPECT_EQ(exchange_.counters().deferred, 1u);
}

TEST_F(ExchangeTest, SendsADeferredPushAgainByItselfEverMoreRarely) {
  Push(0);
  for (int i = 1; i < 3; ++i) Answer(sent_[i], MessageKind::kCommitted);
  Answer(sent_[0], MessageKind::kDeferred);
  std::vector<int> seconds;
  for (int second = 1; second <= 20; ++second) {
    const size_t before = sent_.size();
    now_ += absl::Seconds(1);
    exchange_.OnTick(now_);
    if (sent_.size() > before) {
      seconds.push_back(second);
      Answer(sent_.back(), MessageKind::kDeferred);
    }
  }
  EXPECT_EQ(seconds, (std::vector<int>{1, 3, 7, 15}));
}

TEST_F(ExchangeTest, SendsAtOnceWhatIsWantedBeforeItWasDeferred) {
  Push(0);
  Answer(sent_[0], MessageKind::kPushWanted);
  ASSERT_EQ(sent_.size(), 4u);
  EXPECT_EQ(sent_[3].header, sent_[0].header);
  Answer(sent_[0], MessageKind::kDeferred);  // late: the next answer counts
  Answer(sent_[0], MessageKind::kReceived);
  Answer(sent_[0], MessageKind::kPushWanted);  // later still
  EXPECT_EQ(sent_.size(), 4u);
}

TEST_F(ExchangeTest, IgnoresAnswersToWhatWasNeverSent) {
  Push(2);
  Push(1);
  Outgoing unsent = sent_[3];
  unsent.header.first_segment = 2;
  unsent.to = sent_[2].to;
  unsent.header.block = 1;
  for (uint32_t segment : {1u, 2u}) {
    unsent.header.first_segment = segment;
    unsent.to = LanePeer((3 + segment) % 2);
    for (MessageKind kind : {MessageKind::kReceived, MessageKind::kCommitted,
                             MessageKind::kDeferred, MessageKind::kPushWanted}) {
      Answer(unsent, kind);
    }
  }
  unsent.header.virtual_worker = 4000;
  Answer(unsent, MessageKind::kCommitted);
  unsent.header.virtual_worker = 0xffffffffu;
  Answer(unsent, MessageKind::kCommitted);
  EXPECT_EQ(exchange_.counters().ignored, 10u);
  EXPECT_EQ(sent_.size(), 4u);
}

// A lane that defers, answers late, twice, out of order or not at all: every push ends committed
// once, and all credit comes back.
TEST_F(ExchangeTest, EndsEveryPushOnceWhateverTheOrderOfAnswers) {
  std::mt19937_64 random(11);
  std::vector<Outgoing> seen;
  std::vector<std::pair<Outgoing, MessageKind>> answers;
  for (uint64_t clock = 0; clock < 300; ++clock) {
    for (uint32_t block : {2u, 1u, 0u}) Push(block, clock);
    while (exchange_.open_pushes() > 6) {
      for (Outgoing& message : std::exchange(sent_, {})) seen.push_back(std::move(message));
      const size_t pick = random() % seen.size();
      // A committed push stays so; anything may come before.
      static constexpr MessageKind kAnswers[] = {MessageKind::kReceived, MessageKind::kDeferred,
                                                 MessageKind::kPushWanted, MessageKind::kCommitted};
      for (uint64_t n = random() % 3; n > 0; --n) Answer(seen[pick], kAnswers[random() % 4]);
      if (random() % 8 == 0) {
        now_ += absl::Milliseconds(300);
        exchange_.OnTick(now_);
      }
      if (seen.size() > 400) seen.erase(seen.begin(), seen.begin() + 200);
    }
  }
  while (exchange_.open_pushes() > 0) {
    for (Outgoing& message : std::exchange(sent_, {})) {
      Answer(message, MessageKind::kCommitted);
    }
    now_ += absl::Seconds(100);
    exchange_.OnTick(now_);
  }
  EXPECT_EQ(committed_.size(), 900u);
  EXPECT_EQ(exchange_.counters().most_outstanding_bytes, 4 * kSegment * sizeof(float));
  sent_.clear();
  Push(2, 1000);
  Push(1, 1000);
  EXPECT_EQ(sent_.size(), 4u);  // the whole credit, no more
}

TEST_F(ExchangeTest, LeavesWeightsInPlaceThatLieInOnePiece) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  for (int i : {2, 0, 1}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(pulled_[0].in_place.elements.data(), memory.floats().data());
  EXPECT_EQ(pulled_[0].in_place.elements.size(), 3 * kSegment);
  EXPECT_EQ(pulled_[0].in_place.leases.size(), 3u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, -1.0f));
}

TEST_F(ExchangeTest, CopiesWeightsThatLieApart) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  const Lease other = SharedWeights();
  AnswerInPlace(sent_[0], memory);
  AnswerInPlace(sent_[1], other);
  AnswerInPlace(sent_[2], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(0, std::memcmp(destination_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(ExchangeTest, CopiesWeightsThatAreNotAllTheSenders) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = SharedWeights();
  AnswerInPlace(sent_[0], memory);
  AnswerInPlace(sent_[1], memory, Home::kReceiver);
  AnswerInPlace(sent_[2], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_EQ(0, std::memcmp(destination_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(ExchangeTest, CopiesWhereInPlaceIsNotAskedFor) {
  exchange_.Pull({1, Want::kExact, 7, destination_}, now_);
  std::weak_ptr<AlignedBuffer> held;
  {
    auto buffer = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(float));
    held = buffer;
    const Lease memory(std::move(buffer), std::as_const(*held.lock()).floats());
    for (int i = 0; i < 3; ++i) AnswerInPlace(sent_[i], memory);
  }
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, 0.0f));
}

class Bf16PullTest : public ExchangeTest {
 protected:
  Bf16PullTest() : ExchangeTest(CommConfig::BYTESCHEDULER, CommConfig::BF16) {}

  static Lease Rounded() {
    const Lease weights = SharedWeights();
    auto memory = std::make_shared<AlignedBuffer>(3 * kSegment * sizeof(kernels::Bf16));
    kernels::Bf16FromFloat(weights.floats().data(),
                           reinterpret_cast<kernels::Bf16*>(memory->data()), 3 * kSegment);
    const std::span<const std::byte> bytes(memory->data(), memory->size_bytes());
    return Lease(std::move(memory), bytes);
  }
  void Pull(bool allow_in_place) {
    PullRequest request{.block = 1, .version = 7, .allow_in_place = allow_in_place};
    request.bf16_destination = rounded_;
    exchange_.Pull(std::move(request), now_);
  }

  std::vector<kernels::Bf16> rounded_ = std::vector<kernels::Bf16>(3 * kSegment);
};

TEST_F(Bf16PullTest, ReceivesWeightsAsTheyArePulled) {
  Pull(/*allow_in_place=*/false);
  const Lease memory = Rounded();
  for (int i : {1, 2, 0}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(0, std::memcmp(rounded_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(Bf16PullTest, LeavesThemInPlaceToo) {
  Pull(/*allow_in_place=*/true);
  const Lease memory = Rounded();
  for (int i : {1, 2, 0}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.elements.empty());
  EXPECT_EQ(static_cast<const void*>(pulled_[0].in_place.bf16_elements.data()),
            static_cast<const void*>(memory.bytes().data()));
  EXPECT_EQ(pulled_[0].in_place.bf16_elements.size(), 3 * kSegment);
  EXPECT_EQ(rounded_, std::vector<kernels::Bf16>(3 * kSegment));
}

TEST_F(Bf16PullTest, CopiesThemIfTheyLieApart) {
  Pull(/*allow_in_place=*/true);
  const Lease memory = Rounded();
  const Lease other = Rounded();
  for (int i : {0, 1, 2}) AnswerInPlace(sent_[i], i == 1 ? other : memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.bf16_elements.empty());
  EXPECT_EQ(0, std::memcmp(rounded_.data(), memory.bytes().data(), memory.size_bytes()));
}

TEST_F(Bf16PullTest, WidensThemForAPullOfFloats) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true}, now_);
  const Lease memory = Rounded();
  for (int i : {0, 1, 2}) AnswerInPlace(sent_[i], memory);
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_TRUE(pulled_[0].in_place.leases.empty());
  EXPECT_EQ(destination_[3], 3.5f);
}

TEST_F(ExchangeTest, PushesOnlyTheRunsWhereThatIsSmaller) {
  // Few elements of the first partition, none of the second, all of the third.
  Push(1, 0, {{10, 20}, {100, 101}, {2 * kSegment, 3 * kSegment}});
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[0].header.codec, Codec::kRuns);
  std::optional<EncodedRuns> runs = DecodeRuns(sent_[0].payload.bytes(), kSegment, true);
  ASSERT_TRUE(runs.has_value());
  EXPECT_EQ(runs->runs, (ElementRuns{{10, 20}, {100, 101}}));
  EXPECT_EQ(runs->values.front(), 11.0f);
  EXPECT_EQ(runs->values.back(), 101.0f);
  EXPECT_EQ(sent_[1].header.codec, Codec::kRuns);
  runs = DecodeRuns(sent_[1].payload.bytes(), kSegment, true);
  ASSERT_TRUE(runs.has_value());
  EXPECT_TRUE(runs->runs.empty());
  EXPECT_EQ(sent_[2].header.codec, Codec::kNone);
  EXPECT_EQ(sent_[2].payload.floats().front(), 1.0f + 2 * kSegment);
  // A repeat is encoded again.
  now_ += absl::Seconds(1);
  exchange_.OnTick(now_);
  ASSERT_EQ(sent_.size(), 6u);
  EXPECT_EQ(sent_[3].header, sent_[0].header);
  EXPECT_EQ(0, std::memcmp(sent_[3].payload.bytes().data(), sent_[0].payload.bytes().data(),
                           sent_[0].payload.size_bytes()));
}

TEST_F(ExchangeTest, RunsTakeTheirBytesOfTheCredit) {
  for (uint32_t block : {2u, 1u, 0u}) Push(block, 0, {{0, 1}});
  EXPECT_EQ(sent_.size(), 9u);
}

TEST_F(ExchangeTest, PullsOnlyTheRuns) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true, {{10, 12}, {2 * kSegment, 3 * kSegment}}},
                 now_);
  ASSERT_EQ(sent_.size(), 2u);  // nothing of the second partition is wanted
  EXPECT_EQ(sent_[0].header.codec, Codec::kRuns);
  const std::optional<EncodedRuns> asked = DecodeRuns(sent_[0].payload.bytes(), kSegment, false);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->runs, (ElementRuns{{10, 12}}));
  EXPECT_EQ(sent_[1].header.codec, Codec::kNone);
  const auto answer = [this](const ElementRuns& runs) {
    std::vector<float> payload(EncodedBytes(runs, true) / sizeof(float));
    EncodeRuns(runs, std::vector<float>(kSegment, 3.0f),
               std::as_writable_bytes(std::span(payload)));
    Answer(sent_[0], MessageKind::kWeights, payload);
  };
  Answer(sent_[1], MessageKind::kWeights, std::vector<float>(kSegment, 5.0f));
  answer({{10, 11}});  // not what was asked for
  EXPECT_EQ(exchange_.counters().ignored, 1u);
  EXPECT_TRUE(pulled_.empty());
  answer({{10, 12}});
  ASSERT_EQ(pulled_.size(), 1u);
  for (size_t e = 0; e < destination_.size(); ++e) {
    const float expected = e == 10 || e == 11 ? 3.0f : e >= 2 * kSegment ? 5.0f : -1.0f;
    ASSERT_EQ(destination_[e], expected) << e;
  }
}

class Bf16ExchangeTest : public ExchangeTest {
 protected:
  Bf16ExchangeTest() : ExchangeTest(CommConfig::BYTESCHEDULER, CommConfig::BF16) {}
};

TEST_F(Bf16ExchangeTest, PushesHalfTheBytesRunsOrNot) {
  Push(2);
  Push(1, 0, {{0, 1}});
  ASSERT_EQ(sent_.size(), 6u);  // all fit the credit
  for (const Outgoing& message : sent_) {
    EXPECT_EQ(message.header.codec, Codec::kBf16);
    EXPECT_EQ(message.payload.size_bytes(), kSegment * sizeof(uint16_t));
  }
  const auto* bits = reinterpret_cast<const uint16_t*>(sent_[0].payload.bytes().data());
  EXPECT_EQ(bits[0], 0x3f80);  // 1.0
  EXPECT_EQ(bits[2], 0x4040);  // 3.0
}

TEST_F(Bf16ExchangeTest, WidensWeights) {
  exchange_.Pull({1, Want::kExact, 7, destination_, true, {{0, 1}}}, now_);
  ASSERT_EQ(sent_.size(), 3u);
  std::vector<uint16_t> bits(kSegment, 0x4040);
  std::vector<float> payload(kSegment / 2);
  std::memcpy(payload.data(), bits.data(), kSegment * sizeof(uint16_t));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sent_[i].header.codec, Codec::kBf16);
    Answer(sent_[i], MessageKind::kWeights, payload);
  }
  ASSERT_EQ(pulled_.size(), 1u);
  EXPECT_EQ(destination_, std::vector<float>(3 * kSegment, 3.0f));
}

}  // namespace
}  // namespace tug
