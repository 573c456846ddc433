#include "scheduler/credit_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tug {
namespace {

TEST(CreditQueue, LetsThePriorityGoFirstAndEqualsInOrder) {
  CreditQueue queue(100);
  queue.Enqueue(3, 10, 1);
  queue.Enqueue(1, 10, 2);
  queue.Enqueue(1, 10, 3);
  EXPECT_EQ(queue.Next(), 2u);
  EXPECT_EQ(queue.Next(), 3u);
  EXPECT_EQ(queue.Next(), 1u);
  EXPECT_EQ(queue.Next(), std::nullopt);
}

TEST(CreditQueue, LetsAnItemLargerThanTheCreditGoAlone) {
  CreditQueue queue(10);
  queue.Enqueue(0, 4, 1);
  queue.Enqueue(0, 50, 2);
  EXPECT_EQ(queue.Next(), 1u);
  EXPECT_EQ(queue.Next(), std::nullopt);
  queue.Received(4);
  EXPECT_EQ(queue.Next(), 2u);
}

TEST(CreditQueue, NeitherExceedsNorLeaksCreditNorLosesAnItem) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 100; ++trial) {
    const uint64_t credit = 50 + random() % 100;
    CreditQueue queue(credit);
    std::map<uint64_t, uint64_t> bytes_of;
    std::map<uint64_t, uint64_t> outstanding;
    uint64_t left = 0;
    for (uint64_t item = 0; item < 200; ++item) {
      bytes_of[item] = 1 + random() % 50;
      queue.Enqueue(random() % 4, bytes_of[item], item);
      while (std::optional<uint64_t> next = queue.Next()) {
        ASSERT_TRUE(outstanding.emplace(*next, bytes_of[*next]).second);
        ++left;
      }
      ASSERT_LE(queue.outstanding_bytes(), credit);
      if (!outstanding.empty() && random() % 2 == 0) {
        queue.Received(outstanding.begin()->second);
        outstanding.erase(outstanding.begin());
      }
    }
    while (!outstanding.empty() || queue.waiting() > 0) {
      while (std::optional<uint64_t> next = queue.Next()) {
        outstanding[*next] = bytes_of[*next];
        ++left;
      }
      queue.Received(outstanding.begin()->second);
      outstanding.erase(outstanding.begin());
    }
    EXPECT_EQ(left, 200u);
    EXPECT_EQ(queue.outstanding_bytes(), 0u);
  }
}

}  // namespace
}  // namespace tug
