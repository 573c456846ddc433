// SPDX-License-Identifier: Apache-2.0
// Groups whose ranks share memory, without threads: a posted message is on the board at once.

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "collective/algorithms.h"
#include "collective/collective_test_support.h"
#include "collective/rank_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(8);
constexpr uint64_t kShort = 500;   // elements
constexpr uint64_t kLong = 50000;  // too many for the board

class RankGroupBoardTest : public ::testing::Test {
 protected:
  struct Packet {
    uint32_t from;
    Outgoing outgoing;
  };

  void Open(uint32_t world, uint64_t chunk_bytes = 256 << 10) {
    groups_.clear();
    boards_.clear();
    RankGroupOptions options;
    for (uint32_t rank = 0; rank < world; ++rank) options.peers.push_back(WorkerPeer(rank + 1));
    options.timeout = kTimeout;
    options.chunk_bytes = chunk_bytes;
    for (uint32_t rank = 0; rank < world; ++rank) {
      options.rank = rank;
      groups_.push_back(std::make_unique<RankGroup>(
          options, RankGroup::Sinks{.send =
                                        [this, rank](Outgoing outgoing) {
                                          packets_.push_back({rank, std::move(outgoing)});
                                        },
                                    .wake = [] {}}));
      boards_.push_back(std::make_unique<MessageBoard>(
          rank, world, std::make_shared<AlignedBuffer>(MessageBoard::BoardBytes(world))));
    }
    for (uint32_t rank = 0; rank < world; ++rank) {
      for (uint32_t other = 0; other < world; ++other) {
        if (other != rank) boards_[rank]->Open(other, boards_[other]->own());
      }
      boards_[rank]->SetAsleep(false);
      groups_[rank]->UseBoard(boards_[rank].get());
    }
  }
  uint32_t world() const { return static_cast<uint32_t>(groups_.size()); }

  void Start(uint32_t rank, const CollectiveSchedule& schedule, uint64_t elements,
             uint64_t round = 0) {
    const std::vector<std::byte> own = Contribution(ElementType::kFp32, rank, elements, round);
    buffers_.resize(world());
    buffers_[rank] = std::make_shared<AlignedBuffer>(own.size());
    std::copy(own.begin(), own.end(), buffers_[rank]->data());
    const auto number = groups_[rank]->Start(schedule, BufferOf(buffers_[rank], own.size()),
                                             ElementType::kFp32, now_);
    ASSERT_TRUE(number.ok()) << number.status();
    number_ = *number;
  }
  void StartAllReduce(uint32_t rank, uint64_t elements, const char* algorithm = "ring") {
    Start(rank, FindAllReduce(algorithm)->schedule(rank, world(), {}), elements);
  }

  // Calls Work on ranks in random order until none has work.
  void WorkAll(std::mt19937& random) {
    std::vector<uint32_t> order(world());
    for (uint32_t rank = 0; rank < world(); ++rank) order[rank] = rank;
    for (bool busy = true; busy;) {
      std::shuffle(order.begin(), order.end(), random);
      busy = false;
      for (const uint32_t rank : order) busy = groups_[rank]->Work() || busy;
    }
  }

  void Carry() {
    for (std::deque<Packet> packets = std::exchange(packets_, {}); Packet & packet : packets) {
      packet.outgoing.header.sender = WorkerPeer(packet.from + 1);
      groups_[*groups_[0]->RankOf(packet.outgoing.to)]->OnMessage(
          {packet.outgoing.header, packet.outgoing.payload}, now_);
    }
  }

  // Delivers ticks and messages, except to and from `dead`.
  void PassTime(absl::Duration time, std::optional<uint32_t> dead = std::nullopt) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Milliseconds(100);
      for (uint32_t rank = 0; rank < world(); ++rank) {
        if (rank == dead) continue;
        groups_[rank]->OnTick(now_);
        groups_[rank]->Work();
      }
      Carry();
    }
  }

  std::string Error(uint32_t rank) const { return std::string(groups_[rank]->status().message()); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::deque<Packet> packets_;
  std::vector<std::unique_ptr<MessageBoard>> boards_;
  std::vector<std::unique_ptr<RankGroup>> groups_;
  std::vector<std::shared_ptr<AlignedBuffer>> buffers_;  // by rank: of the last collective
  uint64_t number_ = 0;
};

TEST_F(RankGroupBoardTest, AllAlgorithmsSumWithoutAMessageWhoeverIsFirst) {
  const uint32_t seed = 5;
  std::mt19937 random(seed);
  for (uint32_t ranks = 2; ranks <= 9; ++ranks) {
    Open(ranks, /*chunk_bytes=*/ranks % 2 == 0 ? 256 : 256 << 10);
    uint64_t round = 0;
    for (const AllReduceAlgorithm& algorithm : AllReduceAlgorithms()) {
      for (const uint64_t elements : {0, 1, 7, 500, 2048}) {
        SCOPED_TRACE(testing::Message() << algorithm.name << " " << ranks << " ranks, " << elements
                                        << " elements, seed " << seed);
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          Start(rank, algorithm.schedule(rank, ranks, {.parts = 3}), elements, round);
        }
        WorkAll(random);
        const auto sum = ExactSum(ElementType::kFp32, ranks, elements, round++);
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          ASSERT_TRUE(groups_[rank]->finished(number_)) << rank;
          ASSERT_TRUE(std::equal(sum.begin(), sum.end(), buffers_[rank]->data())) << rank;
        }
      }
    }
  }
  EXPECT_TRUE(packets_.empty());
}

TEST_F(RankGroupBoardTest, LongCollectivesGoByMessagesInBetween) {
  Open(2);
  std::mt19937 random(1);
  for (const uint64_t elements : {kShort, kLong, kShort}) {
    for (const uint32_t rank : {0, 1}) StartAllReduce(rank, elements);
    for (int hop = 0; hop < 10; ++hop) {
      WorkAll(random);
      Carry();
    }
    const auto sum = ExactSum(ElementType::kFp32, 2, elements, 0);
    for (const uint32_t rank : {0, 1}) {
      ASSERT_TRUE(groups_[rank]->finished(number_)) << Error(rank);
      ASSERT_TRUE(std::equal(sum.begin(), sum.end(), buffers_[rank]->data())) << rank;
    }
  }
}

TEST_F(RankGroupBoardTest, SleepingRankIsWokenByMessageOfPostingRank) {
  Open(3);
  Start(1, BroadcastFromRank0(1, 3), kShort);
  boards_[1]->SetAsleep(true);
  Start(0, BroadcastFromRank0(0, 3), kShort);
  EXPECT_TRUE(groups_[0]->Work());
  ASSERT_TRUE(groups_[0]->finished(0));
  ASSERT_EQ(packets_.size(), 1u);
  EXPECT_EQ(packets_[0].outgoing.to, WorkerPeer(2)) << "rank 1";
  Carry();
  EXPECT_TRUE(groups_[1]->Work());
  EXPECT_TRUE(groups_[1]->finished(0)) << Error(1);
}

TEST_F(RankGroupBoardTest, RankAheadWaitsForCellsAndFailsWithItsPeer) {
  Open(2);
  for (uint32_t i = 0; i < MessageBoard::kCells; ++i) {
    Start(0, BroadcastFromRank0(0, 2), kShort);
    EXPECT_TRUE(groups_[0]->Work());
    ASSERT_TRUE(groups_[0]->finished(i));
  }
  Start(0, BroadcastFromRank0(0, 2), kShort);
  while (groups_[0]->Work()) {
  }
  EXPECT_FALSE(groups_[0]->finished(MessageBoard::kCells));
  Start(1, BroadcastFromRank0(1, 2), kShort);
  EXPECT_TRUE(groups_[1]->Work());
  EXPECT_TRUE(groups_[0]->Work());
  EXPECT_TRUE(groups_[0]->finished(MessageBoard::kCells));
  Start(0, BroadcastFromRank0(0, 2), kShort);
  groups_[0]->OnLost(1, "is gone");
  EXPECT_THAT(Error(0), HasSubstr("rank 1 (node 2) is gone"));
}

// Messages posted by a rank can be taken after it is gone or silent.
TEST_F(RankGroupBoardTest, ARankThatHasPostedItsPartMayBeGone) {
  Open(3);
  Start(2, ReduceToRank0(2, 3), kShort);
  EXPECT_TRUE(groups_[2]->Work());
  ASSERT_TRUE(groups_[2]->finished(0));
  Start(0, ReduceToRank0(0, 3), kShort);
  groups_[0]->OnLost(2, "is gone");
  EXPECT_TRUE(groups_[0]->status().ok()) << Error(0);
  Start(1, ReduceToRank0(1, 3), kShort);
  std::mt19937 random(1);
  WorkAll(random);
  EXPECT_TRUE(groups_[0]->finished(0)) << Error(0);
  const auto sum = ExactSum(ElementType::kFp32, 3, kShort, 0);
  EXPECT_TRUE(std::equal(sum.begin(), sum.end(), buffers_[0]->data()));
}

TEST_F(RankGroupBoardTest, ARankThatHasPostedItsPartIsNotBlamedForSilence) {
  Open(3);
  Start(0, ReduceToRank0(0, 3), kShort);
  boards_[0]->SetAsleep(true);
  Start(2, ReduceToRank0(2, 3), kShort);
  EXPECT_TRUE(groups_[2]->Work());
  Carry();  // keep-alive of rank 2, which wakes rank 0
  boards_[0]->SetAsleep(false);
  PassTime(kTimeout);  // rank 1 has not started yet
  EXPECT_TRUE(groups_[0]->status().ok()) << Error(0);
}

// Rank 0 posts what rank 1 needs last before what it needs first, which waits for rank 3.
CollectiveSchedule LastBeforeFirst(uint32_t rank) {
  CollectiveSchedule schedule{.parts = 2, .steps = std::vector<Step>(4)};
  const auto transfer = [&](uint32_t step, uint32_t from, uint32_t to, uint32_t part) {
    if (rank == from) schedule.steps[step].sends.push_back({to, part, part + 1});
    if (rank == to) schedule.steps[step].receives.push_back({from, part, part + 1, true});
  };
  transfer(0, 3, 0, 0);
  transfer(1, 0, 1, 0);
  transfer(2, 2, 1, 1);
  transfer(3, 0, 1, 1);
  return schedule;
}

TEST_F(RankGroupBoardTest, EarlyPostIsKeptUntilItsTurn) {
  Open(4);
  for (const uint32_t rank : {0, 1, 3}) Start(rank, LastBeforeFirst(rank), kShort);
  std::mt19937 random(1);
  WorkAll(random);
  ASSERT_TRUE(groups_[0]->finished(0));
  ASSERT_FALSE(groups_[1]->finished(0)) << "rank 2 is not there yet";
  const auto result = buffers_[1];
  for (uint32_t i = 0; i < MessageBoard::kCells; ++i) {  // reuses all cells for rank 1
    Start(0, BroadcastFromRank0(0, 4), kShort, /*round=*/7);
    EXPECT_TRUE(groups_[0]->Work());
  }
  Start(2, LastBeforeFirst(2), kShort);
  WorkAll(random);
  ASSERT_TRUE(groups_[1]->finished(0)) << Error(1);
  for (uint64_t i = 0; i < kShort; ++i) {
    const uint32_t third = i < kShort / 2 ? 3 : 2;
    ASSERT_EQ(result->floats()[i],
              ContributionOf(0, i, 0) + ContributionOf(1, i, 0) + ContributionOf(third, i, 0))
        << i;
  }
}

// Rank 1 sends to rank 0, then to rank 2: as many steps as a broadcast of rank 0 has.
CollectiveSchedule BroadcastOfRank1(uint32_t rank) {
  CollectiveSchedule schedule{.steps = std::vector<Step>(2)};
  if (rank == 0) schedule.steps[0].receives = {{.peer = 1, .end = 1}};
  if (rank == 1) schedule.steps[0].sends = {{.peer = 0, .end = 1}};
  if (rank == 1) schedule.steps[1].sends = {{.peer = 2, .end = 1}};
  return schedule;
}

TEST_F(RankGroupBoardTest, AMessageThatNobodyExpectsIsAnErrorThatNamesTheRank) {
  Open(3);
  Start(2, BroadcastFromRank0(2, 3), kShort);
  for (const uint32_t rank : {0, 1}) Start(rank, BroadcastOfRank1(rank), kShort);
  PassTime(absl::Milliseconds(300));
  EXPECT_THAT(Error(2),
              AllOf(HasSubstr("rank 1"), HasSubstr("sends message 0"), HasSubstr("expects 0")));
}

TEST_F(RankGroupBoardTest, ShortAndLongAreAnErrorThatSaysBothSizes) {
  for (const uint32_t short_rank : {0, 1}) {
    Open(2);
    packets_.clear();
    StartAllReduce(short_rank, kShort);
    StartAllReduce(1 - short_rank, kLong);
    PassTime(absl::Milliseconds(300));
    for (const uint32_t rank : {0, 1}) {
      EXPECT_THAT(Error(rank), AllOf(HasSubstr("500 FP32 elements"), HasSubstr("50000 FP32")));
    }
  }
}

TEST_F(RankGroupBoardTest, SizeMismatchWithPostingRankIsReported) {
  Open(2);
  Start(0, BroadcastFromRank0(0, 2), kShort);
  EXPECT_TRUE(groups_[0]->Work());
  ASSERT_TRUE(groups_[0]->finished(0));
  Start(1, BroadcastFromRank0(1, 2), kLong);
  PassTime(absl::Milliseconds(300));
  EXPECT_THAT(Error(1),
              AllOf(HasSubstr("rank 0"), HasSubstr("500 FP32 elements"), HasSubstr("50000 FP32")));
}

TEST_F(RankGroupBoardTest, AnotherAlgorithmIsAnErrorThatNamesTheRank) {
  Open(2);
  StartAllReduce(0, kShort, "ring");
  StartAllReduce(1, kShort, "recursive_doubling");
  PassTime(absl::Milliseconds(300));
  for (const uint32_t rank : {0, 1}) {
    EXPECT_THAT(Error(rank), AllOf(HasSubstr("2 parts"), HasSubstr("1 parts")));
  }
}

TEST_F(RankGroupBoardTest, ErrorNamesRankThatIsACollectiveAhead) {
  Open(2);
  Start(0, BroadcastFromRank0(0, 2), 0);  // posts nothing
  Start(0, BroadcastFromRank0(0, 2), kShort);
  StartAllReduce(1, kShort);
  EXPECT_TRUE(groups_[1]->Work());
  EXPECT_THAT(Error(1), AllOf(HasSubstr("rank 0"), HasSubstr("is in collective 1"),
                              HasSubstr("rank 1 in 0")));
}

TEST_F(RankGroupBoardTest, SilenceInTheMiddleIsNoticedWithinTheTimeoutAndToldToAll) {
  Open(3);
  for (uint32_t rank = 0; rank < 3; ++rank) StartAllReduce(rank, kShort);
  groups_[0]->Work();  // rank 2 has posted its first message and then stops
  groups_[1]->Work();
  PassTime(kTimeout, /*dead=*/2);
  for (const uint32_t rank : {0, 1}) {
    EXPECT_THAT(Error(rank), AllOf(HasSubstr("rank 2"), HasSubstr("sent no message for")));
  }
}

}  // namespace
}  // namespace tug
