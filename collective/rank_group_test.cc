// SPDX-License-Identifier: Apache-2.0
// Groups without a network: the test hands messages over and sets the time.

#include "collective/rank_group.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kJob = 77;
constexpr uint64_t kElements = 5000;
constexpr absl::Duration kTimeout = absl::Seconds(8);
constexpr absl::Duration kPatience = absl::Minutes(5);

// Copies the payload, as a network does: the sender's lease ends.
Message Carried(const Outgoing& outgoing, PeerId from) {
  const auto memory = std::make_shared<AlignedBuffer>(outgoing.payload.size_bytes());
  std::copy(outgoing.payload.bytes().begin(), outgoing.payload.bytes().end(), memory->data());
  Message message{outgoing.header,
                  Lease(memory, std::span<const std::byte>(memory->data(), memory->size_bytes()))};
  message.header.sender = from;
  return message;
}

class RankGroupTest : public ::testing::Test {
 protected:
  struct Packet {
    uint32_t from;
    Outgoing outgoing;
  };

  void Open(uint32_t world, uint64_t early_bytes = 1 << 30) {
    RankGroupOptions options;
    for (uint32_t rank = 0; rank < world; ++rank) options.peers.push_back(WorkerPeer(rank + 1));
    options.job = kJob;
    options.chunk_bytes = 16 << 10;
    options.early_bytes = early_bytes;
    options.timeout = kTimeout;
    options.patience = kPatience;
    for (uint32_t rank = 0; rank < world; ++rank) {
      options.rank = rank;
      groups_.push_back(std::make_unique<RankGroup>(
          options, RankGroup::Sinks{.send =
                                        [this, rank](Outgoing outgoing) {
                                          packets_.push_back({rank, std::move(outgoing)});
                                        },
                                    .wake = [] {}}));
    }
  }

  // Treats all other ranks as reached over a network.
  void SpreadOut() {
    for (auto& group : groups_) group->SetOverNetwork(std::vector<bool>(groups_.size(), true));
  }

  // Starts an all-reduce of the rank's contribution to `round`.
  uint64_t Start(uint32_t rank, uint64_t round, uint64_t elements = kElements,
                 const char* algorithm = "ring") {
    const auto world = static_cast<uint32_t>(groups_.size());
    const std::vector<std::byte> own = Contribution(ElementType::kFp32, rank, elements, round);
    auto memory = std::make_shared<AlignedBuffer>(own.size());
    std::copy(own.begin(), own.end(), memory->data());
    buffers_.push_back(memory);
    const auto number =
        groups_[rank]->Start(FindAllReduce(algorithm)->schedule(rank, world, {}),
                             BufferOf(memory, own.size()), ElementType::kFp32, now_);
    EXPECT_TRUE(number.ok()) << number.status();
    return number.ok() ? *number : 0;
  }

  // Starts a schedule on kElements of the rank's contribution to round 0.
  absl::Status StartSchedule(uint32_t rank, const CollectiveSchedule& schedule) {
    const std::vector<std::byte> own = Contribution(ElementType::kFp32, rank, kElements, 0);
    auto memory = std::make_shared<AlignedBuffer>(own.size());
    std::copy(own.begin(), own.end(), memory->data());
    buffers_.push_back(memory);
    return groups_[rank]
        ->Start(schedule, BufferOf(memory, own.size()), ElementType::kFp32, now_)
        .status();
  }

  // Delivers all messages, `copies` times, except to and from `dead`, until none is in flight.
  void Pump(int copies = 1, std::optional<uint32_t> dead = std::nullopt) {
    bool busy = true;
    while (busy) {
      busy = !packets_.empty();
      for (std::deque<Packet> packets = std::exchange(packets_, {}); Packet & packet : packets) {
        const uint32_t to = *groups_[0]->RankOf(packet.outgoing.to);
        if (dead.has_value() && (packet.from == *dead || to == *dead)) continue;
        for (int copy = 0; copy < copies; ++copy) {
          groups_[to]->OnMessage(Carried(packet.outgoing, WorkerPeer(packet.from + 1)), now_);
        }
      }
      for (auto& group : groups_) {
        while (group->Work()) busy = true;
      }
    }
  }

  void PassTime(absl::Duration time, std::optional<uint32_t> dead = std::nullopt) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Milliseconds(100);
      for (uint32_t rank = 0; rank < groups_.size(); ++rank) {
        if (rank != dead) groups_[rank]->OnTick(now_);
      }
      Pump(1, dead);
    }
  }

  void ExpectSum(size_t buffer, uint64_t round, uint64_t elements = kElements) {
    const std::vector<std::byte> sum =
        ExactSum(ElementType::kFp32, static_cast<uint32_t>(groups_.size()), elements, round);
    EXPECT_EQ(std::memcmp(buffers_[buffer]->data(), sum.data(), sum.size()), 0) << buffer;
  }

  std::string Error(uint32_t rank) const { return std::string(groups_[rank]->status().message()); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::deque<Packet> packets_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  std::vector<std::shared_ptr<AlignedBuffer>> buffers_;
};

TEST_F(RankGroupTest, SeveralCollectivesAreUnderWayAtOnce) {
  Open(3);
  std::vector<uint64_t> numbers;
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint32_t rank = 0; rank < 3; ++rank) numbers.push_back(Start(rank, round, 100 + round));
  }
  EXPECT_FALSE(groups_[0]->finished(0));
  Pump();
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], i / 3);
    EXPECT_TRUE(groups_[i % 3]->finished(numbers[i]));
    ExpectSum(i, i / 3, 100 + i / 3);
  }
}

TEST_F(RankGroupTest, KeepsMessagesOfCollectivesNotYetStarted) {
  Open(2);
  for (uint64_t round = 0; round < 3; ++round) Start(0, round);
  Pump();
  for (uint64_t round = 0; round < 3; ++round) Start(1, round);
  Pump();
  for (size_t i = 0; i < 6; ++i) ExpectSum(i, i % 3);
}

TEST_F(RankGroupTest, MoreThanMayBeKeptIsAnError) {
  Open(2, /*early_bytes=*/30000);
  for (uint64_t round = 0; round < 8; ++round) Start(0, round);
  Pump();
  for (const uint32_t rank : {0, 1}) {
    EXPECT_THAT(Error(rank), AllOf(HasSubstr("rank 1 (node 2) is too slow"), HasSubstr("rank 0"),
                                   HasSubstr("too far ahead"), HasSubstr("30000 bytes")));
    EXPECT_EQ(groups_[rank]->status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(RankGroupTest, RepeatsAreIgnored) {
  Open(3);
  for (uint64_t round = 0; round < 2; ++round) {
    for (uint32_t rank = 0; rank < 3; ++rank) Start(rank, round);
    Pump(/*copies=*/3);
  }
  for (size_t i = 0; i < 6; ++i) ExpectSum(i, i / 3);
}

TEST_F(RankGroupTest, StrangersAndOtherJobsAreIgnored) {
  Open(2);
  Start(0, 0);
  Start(1, 0);
  Outgoing hostile;
  hostile.header.kind = MessageKind::kRankFailed;
  hostile.header.job = kJob;
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(9)), now_);  // not a rank of the group
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(1)), now_);  // the group's own rank
  hostile.header.job = kJob + 1;
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(2)), now_);
  hostile.header.job = kJob;
  hostile.header.timeline = 1;
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(2)), now_);
  hostile.header.timeline = 0;
  hostile.header.virtual_worker = 2;  // unknown rank
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(2)), now_);
  hostile.header.kind = MessageKind::kPush;
  groups_[0]->OnMessage(Carried(hostile, WorkerPeer(2)), now_);
  EXPECT_EQ(groups_[0]->ignored_messages(), 6u);
  Pump();
  ExpectSum(0, 0);
}

TEST_F(RankGroupTest, ElementsThatDoNotFitAreAnErrorThatSaysBoth) {
  for (const int wrong : {0, 1, 2}) {
    groups_.clear();
    packets_.clear();
    Open(2);
    Start(0, 0);
    Start(1, 0);
    for (Packet& packet : packets_) {
      if (packet.from != 1) continue;
      if (wrong == 0) packet.outgoing.payload = packet.outgoing.payload.Slice(0, 8);
      if (wrong == 1) packet.outgoing.header.token_count += 1;
      if (wrong == 2) packet.outgoing.header.first_segment = 1000;
    }
    Pump();
    EXPECT_THAT(Error(0), AllOf(HasSubstr("rank 1 (node 2) sends"), HasSubstr("expects")));
    EXPECT_FALSE(groups_[1]->status().ok());
    EXPECT_EQ(groups_[0]->Start({}, {}, ElementType::kFp32, now_).status(), groups_[0]->status());
  }
}

TEST_F(RankGroupTest, OverANetworkALargeMessageWaitsUntilItsReceiverHasItsPortFree) {
  constexpr uint64_t kMany = 20000;
  Open(4);
  SpreadOut();
  const auto kinds = [&] {
    std::vector<MessageKind> all;
    for (const Packet& packet : packets_) all.push_back(packet.outgoing.header.kind);
    return all;
  };
  Start(0, 0, kMany, "halving_doubling");
  EXPECT_THAT(kinds(), ElementsAre(MessageKind::kClearToSend));  // to the peer of the first step
  Pump();
  Start(1, 0, kMany, "halving_doubling");
  EXPECT_THAT(kinds(), Contains(MessageKind::kElements));
  Pump();
  for (const uint32_t rank : {2, 3}) Start(rank, 0, kMany, "halving_doubling");
  Pump();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(groups_[i]->finished(0)) << i;
    ExpectSum(i, 0, kMany);
  }
}

TEST_F(RankGroupTest, OverANetworkAllAlgorithmsComeToAnEndWhoeverStartsLast) {
  constexpr uint64_t kMany = 30000;
  for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
    for (const uint32_t world : {3, 4, 7, 8}) {
      groups_.clear();
      buffers_.clear();
      Open(world);
      SpreadOut();
      for (uint32_t i = 0; i < 2 * world; ++i) {
        Start(i % world, i / world, kMany, algorithm.name);
        Pump(/*copies=*/2);
      }
      for (size_t i = 0; i < 2 * world; ++i) {
        ASSERT_TRUE(groups_[i % world]->finished(i / world)) << algorithm.name << " of " << world;
        ASSERT_NO_FATAL_FAILURE(ExpectSum(i, i / world, kMany));
      }
    }
  }
}

TEST_F(RankGroupTest, AWordAboutAMessageThatIsNoneIsAnErrorThatNamesTheRank) {
  Open(4);
  SpreadOut();
  for (uint32_t rank = 0; rank < 4; ++rank) Start(rank, 0, 20000, "halving_doubling");
  Packet word = packets_.front();  // of rank 0, to rank 1
  ASSERT_EQ(word.outgoing.header.kind, MessageKind::kClearToSend);
  word.outgoing.header.first_segment = 99;
  groups_[1]->OnMessage(Carried(word.outgoing, WorkerPeer(1)), now_);
  EXPECT_THAT(Error(1), AllOf(HasSubstr("rank 0 (node 1)"), HasSubstr("message 99")));
}

TEST_F(RankGroupTest, RanksDisagreeingOnNetworkBetweenThemFail) {
  Open(3);
  groups_[0]->SetOverNetwork({false, true, false});
  for (uint32_t rank = 0; rank < 3; ++rank) Start(rank, 0);
  Pump();
  for (const uint32_t rank : {0, 1, 2}) EXPECT_THAT(Error(rank), HasSubstr("over the network"));
}

TEST_F(RankGroupTest, ErrorNamesRankThatGoesSilentWhileAwaited) {
  Open(4);
  SpreadOut();
  for (uint32_t rank = 0; rank < 4; ++rank) Start(rank, 0, 20000, "halving_doubling");
  PassTime(kTimeout, /*dead=*/1);
  PassTime(kPatience, /*dead=*/1);
  for (const uint32_t rank : {0, 2, 3}) EXPECT_THAT(Error(rank), HasSubstr("rank 1 (node 2)"));
}

TEST_F(RankGroupTest, SilenceInTheMiddleIsNoticedWithinTheTimeoutAndToldToAll) {
  Open(5);
  for (uint32_t rank = 0; rank < 5; ++rank) Start(rank, 0);
  // Only the first messages of rank 2 arrive.
  for (Packet& packet : std::exchange(packets_, {})) {
    groups_[*groups_[0]->RankOf(packet.outgoing.to)]->OnMessage(
        Carried(packet.outgoing, WorkerPeer(packet.from + 1)), now_);
  }
  PassTime(kTimeout, /*dead=*/2);
  for (const uint32_t rank : {0, 1, 3, 4}) {
    EXPECT_THAT(Error(rank), AllOf(HasSubstr("rank 2 (node 3) "), HasSubstr("during collective")));
  }
}

TEST_F(RankGroupTest, ARankThatHasNotComeYetIsWaitedForWithPatience) {
  Open(3);
  Start(0, 0);
  Start(1, 0);
  PassTime(10 * kTimeout);
  EXPECT_TRUE(groups_[0]->status().ok()) << groups_[0]->status();
  Start(2, 0);
  Pump();
  for (size_t i = 0; i < 3; ++i) ExpectSum(i, 0);
  Start(0, 1);
  Start(1, 1);
  PassTime(kPatience + absl::Seconds(1));
  EXPECT_THAT(Error(0), AllOf(HasSubstr("rank 2"), HasSubstr("has not entered collective 1")));
  EXPECT_THAT(Error(1), HasSubstr("rank 2"));
}

TEST_F(RankGroupTest, ASlowLinkWithRanksThatSayTheyAreThereIsNoError) {
  Open(2);
  Start(0, 0);
  Start(1, 0);
  std::deque<Packet> slow = std::exchange(packets_, {});
  PassTime(10 * kTimeout);
  EXPECT_TRUE(groups_[0]->status().ok()) << groups_[0]->status();
  packets_ = std::move(slow);
  Pump();
  ExpectSum(0, 0);
  ExpectSum(1, 0);
}

TEST_F(RankGroupTest, StoppedRankDoesNotBlameOtherRanks) {
  Open(2);
  Start(0, 0);
  Start(1, 0);
  std::deque<Packet> slow = std::exchange(packets_, {});
  PassTime(kTimeout);
  now_ += 3 * kTimeout;
  groups_[0]->OnTick(now_);
  EXPECT_TRUE(groups_[0]->status().ok()) << groups_[0]->status();
  now_ += 3 * kPatience;
  groups_[0]->OnTick(now_);
  EXPECT_TRUE(groups_[0]->status().ok()) << groups_[0]->status();
}

// 2 -> 1 -> 0, and rank 2 never starts. Rank 0 has waited longer than rank 1, but rank 1 is alive.
TEST_F(RankGroupTest, RankWaitingForStuckRankIsNotBlamed) {
  Open(3);
  CollectiveSchedule first{.parts = 1, .steps = {{}, {}}};
  first.steps[1].receives = {{.peer = 1, .end = 1, .reduces = true}};
  CollectiveSchedule middle{.parts = 1, .steps = {{}, {}}};
  middle.steps[0].receives = {{.peer = 2, .end = 1, .reduces = true}};
  middle.steps[1].sends = {{.peer = 0, .end = 1}};
  ASSERT_TRUE(StartSchedule(0, first).ok());
  PassTime(kPatience / 2);
  ASSERT_TRUE(StartSchedule(1, middle).ok());
  PassTime(kPatience + absl::Seconds(1));
  for (const uint32_t rank : {0, 1}) {
    EXPECT_THAT(Error(rank), AllOf(HasSubstr("rank 2 (node 3)"), HasSubstr("has not entered")));
  }
}

TEST_F(RankGroupTest, ALostConnectionMattersToWhoNeedsTheRank) {
  Open(2);
  Start(0, 0);
  Start(1, 0);
  Pump();
  groups_[0]->OnLost(1, "is gone");
  EXPECT_TRUE(groups_[0]->status().ok());
  const auto memory = std::make_shared<AlignedBuffer>(4);
  const auto started = groups_[0]->Start(FindAllReduce("ring")->schedule(0, 2, {}),
                                         BufferOf(memory, 4), ElementType::kFp32, now_);
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("rank 1 (node 2) is gone"));
}

// Rank 0 sums rank 1's contribution before rank 2's.
TEST_F(RankGroupTest, ARankThatHasDoneItsPartMayBeGone) {
  Open(3);
  ASSERT_TRUE(StartSchedule(0, ReduceToRank0(0, 3)).ok());
  ASSERT_TRUE(StartSchedule(2, ReduceToRank0(2, 3)).ok());
  Pump();
  EXPECT_TRUE(groups_[2]->finished(0));
  groups_[0]->OnLost(2, "is gone");
  groups_[1]->OnLost(2, "is gone");
  ASSERT_TRUE(StartSchedule(1, ReduceToRank0(1, 3)).ok());
  Pump();
  EXPECT_TRUE(groups_[0]->status().ok()) << groups_[0]->status();
  ExpectSum(0, 0);
}

TEST_F(RankGroupTest, RefusesAScheduleThatNamesNobodyOrNoParts) {
  Open(2);
  const auto memory = std::make_shared<AlignedBuffer>(8);
  CollectiveSchedule schedule{.parts = 1, .steps = {{}}};
  schedule.steps[0].sends = {{.peer = 2, .end = 1}};
  EXPECT_EQ(
      groups_[0]->Start(schedule, BufferOf(memory, 8), ElementType::kFp32, now_).status().code(),
      absl::StatusCode::kInvalidArgument);
  schedule.steps[0].sends = {{.peer = 1, .begin = 1, .end = 1}};
  EXPECT_EQ(
      groups_[0]->Start(schedule, BufferOf(memory, 8), ElementType::kFp32, now_).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(groups_[0]
                ->Start(CollectiveSchedule{}, BufferOf(memory, 7), ElementType::kBf16, now_)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(groups_[0]->status().ok());
}

}  // namespace
}  // namespace tug
