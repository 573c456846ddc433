// SPDX-License-Identifier: Apache-2.0
#include "collective/message_board.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

WireHeader Numbered(uint64_t number) {
  WireHeader header;
  header.kind = MessageKind::kElements;
  header.clock = number;
  return header;
}

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string TextOf(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Boards of all ranks, each opened by all others.
class Boards {
 public:
  explicit Boards(uint32_t world) {
    for (uint32_t rank = 0; rank < world; ++rank) {
      auto memory = std::make_shared<AlignedBuffer>(MessageBoard::BoardBytes(world));
      // Filled as memory of an arena that was used before.
      std::memset(memory->data(), 0xA5, memory->size_bytes());
      boards_.push_back(std::make_unique<MessageBoard>(rank, world, std::move(memory)));
    }
    for (uint32_t rank = 0; rank < world; ++rank) {
      for (uint32_t other = 0; other < world; ++other) {
        if (other == rank) continue;
        EXPECT_TRUE(boards_[rank]->Open(other, boards_[other]->own()));
      }
      EXPECT_TRUE(boards_[rank]->complete());
      boards_[rank]->SetAsleep(false);
    }
  }
  MessageBoard& operator[](uint32_t rank) { return *boards_[rank]; }

 private:
  std::vector<std::unique_ptr<MessageBoard>> boards_;
};

TEST(MessageBoard, AMessageIsReadWhereItIsPostedUntilItIsTaken) {
  Boards boards(3);
  boards[1].Post(2, Numbered(7), Bytes("seven"));
  EXPECT_FALSE(boards[0].First(1).has_value()) << "it was for another";
  const auto posted = boards[2].First(1);
  ASSERT_TRUE(posted.has_value());
  EXPECT_EQ(posted->header.clock, 7u);
  EXPECT_EQ(TextOf(posted->payload), "seven");
  boards[2].Take(1);
  EXPECT_FALSE(boards[2].First(1).has_value());
  boards[1].Post(2, Numbered(8), {});
  EXPECT_EQ(boards[2].First(1)->header.clock, 8u);
  EXPECT_TRUE(boards[2].First(1)->payload.empty());
}

TEST(MessageBoard, MessagesWithoutACellWaitForOneAndKeepTheirOrder) {
  Boards boards(2);
  const uint64_t count = 3 * MessageBoard::kCells;
  for (uint64_t i = 0; i < count; ++i) {
    boards[0].Post(1, Numbered(i), Bytes(std::to_string(i)));
  }
  EXPECT_EQ(boards[0].waiting(), count - MessageBoard::kCells);
  EXPECT_EQ(boards[0].waiting(1), count - MessageBoard::kCells);
  EXPECT_FALSE(boards[0].Flush()) << "nothing was taken";
  for (uint64_t i = 0; i < count; ++i) {
    const auto head = boards[1].First(0);
    ASSERT_TRUE(head.has_value()) << i;
    ASSERT_EQ(head->header.clock, i);
    ASSERT_EQ(TextOf(head->payload), std::to_string(i));
    boards[1].Take(0);
    ASSERT_EQ(boards[0].Flush(), i < count - MessageBoard::kCells);
  }
  EXPECT_EQ(boards[0].waiting(), 0u);
}

TEST(MessageBoard, SleepingRankIsNudgedOnceAfterPostOrTake) {
  Boards boards(3);
  std::vector<uint32_t> woken;
  const auto wake = [&](uint32_t rank) { woken.push_back(rank); };
  boards[1].SetAsleep(true);
  boards[0].Post(2, Numbered(1), {});
  boards[0].Nudge(wake);
  EXPECT_TRUE(woken.empty()) << "rank 2 is awake, and rank 1 has nothing to look for";
  boards[0].Post(1, Numbered(1), {});
  boards[0].Nudge(wake);
  boards[0].Nudge(wake);
  EXPECT_EQ(woken, std::vector<uint32_t>{1});
  boards[2].SetAsleep(true);
  woken.clear();
  boards[1].Take(0);
  boards[1].Nudge(wake);
  EXPECT_TRUE(woken.empty()) << "rank 0 is awake";
  boards[0].SetAsleep(true);
  boards[2].Take(0);
  boards[2].Nudge(wake);
  EXPECT_EQ(woken, std::vector<uint32_t>{0}) << "it may wait for a cell";
}

TEST(MessageBoard, ACopyOfABoardShowsARankThatNeverWakes) {
  const size_t bytes = MessageBoard::BoardBytes(2);
  MessageBoard other(1, 2, std::make_shared<AlignedBuffer>(bytes));
  const auto copy = std::make_shared<AlignedBuffer>(bytes);
  std::memcpy(copy->data(), other.own().bytes().data(), bytes);
  for (const bool is_copy : {true, false}) {
    MessageBoard board(0, 2, std::make_shared<AlignedBuffer>(bytes));
    const std::span<const std::byte> copied(copy->data(), bytes);
    ASSERT_TRUE(board.Open(1, is_copy ? Lease(copy, copied) : other.own()));
    other.SetAsleep(true);
    EXPECT_FALSE(board.AllAwake());
    other.SetAsleep(false);
    EXPECT_EQ(board.AllAwake(), !is_copy);
  }
}

TEST(MessageBoard, MemoryThatIsNoBoardIsRefused) {
  Boards boards(2);
  MessageBoard board(0, 2, std::make_shared<AlignedBuffer>(MessageBoard::BoardBytes(2)));
  const Lease own = boards[1].own();
  EXPECT_FALSE(board.Open(1, Lease()));
  EXPECT_FALSE(board.Open(1, own.Slice(0, own.size_bytes() - 1)));
  EXPECT_FALSE(board.complete());
}

TEST(MessageBoard, PayloadsOfHostilePeerStayWithinCells) {
  const uint32_t seed = 11;
  std::mt19937_64 random(seed);
  const size_t bytes = MessageBoard::BoardBytes(2);
  const auto memory = std::make_shared<AlignedBuffer>(bytes);
  MessageBoard board(0, 2, std::make_shared<AlignedBuffer>(bytes));
  ASSERT_TRUE(board.Open(1, Lease(memory, std::span<const std::byte>(memory->data(), bytes))));
  size_t heads = 0;
  for (int round = 0; round < 200; ++round) {
    // Whole words, often small: plausible counts.
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      const uint64_t word = random() % 4 == 0 ? random() : random() % 20;
      std::memcpy(memory->data() + at, &word, sizeof(word));
    }
    while (const auto head = board.First(1)) {
      ++heads;
      ASSERT_LE(head->payload.size(), MessageBoard::kByteLimit) << "seed " << seed;
      ASSERT_GE(head->payload.data(), memory->data());
      ASSERT_LE(head->payload.data() + head->payload.size(), memory->data() + bytes);
      board.Take(1);
    }
    board.Post(1, Numbered(1), {});
    board.Flush();
  }
  EXPECT_GT(heads, 0u);
}

TEST(MessageBoard, TwoThreadsHandEverythingOver) {
  Boards boards(2);
  constexpr uint64_t kCount = 20000;
  const auto side = [&](uint32_t rank) {
    MessageBoard& board = boards[rank];
    std::vector<std::byte> payload;
    uint64_t sent = 0;
    uint64_t taken = 0;
    while (sent < kCount || taken < kCount || board.waiting() > 0) {
      if (sent < kCount && board.waiting() < 4) {
        payload.assign(sent % 300, static_cast<std::byte>(sent));
        board.Post(1 - rank, Numbered(sent++), payload);
      }
      board.Flush();
      if (const auto head = board.First(1 - rank)) {
        ASSERT_EQ(head->header.clock, taken);
        ASSERT_EQ(head->payload.size(), taken % 300);
        for (const std::byte byte : head->payload) ASSERT_EQ(byte, static_cast<std::byte>(taken));
        board.Take(1 - rank);
        ++taken;
      }
    }
  };
  std::thread other(side, 1);
  side(0);
  other.join();
}

}  // namespace
}  // namespace tug
