// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/gradient_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace tug {
namespace {

std::shared_ptr<AlignedBuffer> OnHeap(size_t size_bytes) {
  return std::make_shared<AlignedBuffer>(size_bytes);
}

// An embedding, three layers, a head.
const std::vector<size_t> kBlocks = {4000, 800, 800, 800, 64};

TEST(GradientPool, HoldsTheLargestBlocksAndNoMore) {
  GradientPool pool(kBlocks, 2, OnHeap);
  EXPECT_EQ(pool.max_size_bytes(), 4800u);
  EXPECT_EQ(GradientPool(kBlocks, 100, OnHeap).max_size_bytes(), 6464u)
      << "there are no more blocks";
}

TEST(GradientPool, GivesTheSmallestThatIsLargeEnough) {
  GradientPool pool(kBlocks, 2, OnHeap);
  EXPECT_EQ(pool.Take(4)->size_bytes(), 800u);
  EXPECT_EQ(pool.Take(0)->size_bytes(), 4000u);
  EXPECT_EQ(pool.Take(3), nullptr);
}

TEST(GradientPool, IsFreeAgainInTheOrderOfPushes) {
  GradientPool pool(kBlocks, 2, OnHeap);
  EXPECT_FALSE(pool.oldest().has_value());
  ASSERT_NE(pool.Take(3), nullptr);
  pool.OnPushed(3, 7);
  ASSERT_NE(pool.Take(2), nullptr) << "in the larger one";
  pool.OnPushed(2, 7);
  EXPECT_EQ(pool.Take(1), nullptr);
  EXPECT_EQ(pool.oldest(), (GradientPool::Pushed{3, 7}));
  pool.OnReceived();
  EXPECT_EQ(pool.Take(0), nullptr) << "it is too small for this";
  EXPECT_EQ(pool.oldest(), (GradientPool::Pushed{2, 7}));
  pool.OnReceived();
  EXPECT_NE(pool.Take(0), nullptr);
}

TEST(GradientPool, LeavesABufferToARepeatThatIsUnderWay) {
  GradientPool pool(kBlocks, 1, OnHeap);
  const std::shared_ptr<AlignedBuffer> sent = pool.Take(1);
  pool.OnPushed(1, 0);
  pool.OnReceived();
  EXPECT_NE(pool.Take(2), sent);
  EXPECT_EQ(pool.max_size_bytes(), 4000u);
}

TEST(GradientPool, BufferBeyondBoundIsFreedOnceReceived) {
  GradientPool pool(kBlocks, 1, OnHeap);
  ASSERT_NE(pool.Take(1), nullptr);
  pool.OnPushed(1, 0);
  std::weak_ptr<AlignedBuffer> beyond = pool.AllocateBeyondBound(2);
  EXPECT_EQ(beyond.lock()->size_bytes(), 800u);
  EXPECT_EQ(pool.max_size_bytes(), 4800u);
  pool.OnPushed(2, 0);
  pool.OnReceived();
  EXPECT_FALSE(beyond.expired());
  pool.OnReceived();
  EXPECT_TRUE(beyond.expired());
  EXPECT_FALSE(pool.oldest().has_value());
  ASSERT_NE(pool.Take(0), nullptr);
  EXPECT_EQ(pool.Take(1), nullptr) << "the bound is as before";
  EXPECT_EQ(pool.AllocateBeyondBound(1)->size_bytes(), 800u);
  EXPECT_EQ(pool.max_size_bytes(), 4800u) << "at a time";
}

TEST(GradientPool, LeavesEachBlockItsOwnWhereAllMayBeInUse) {
  GradientPool pool(kBlocks, 5, OnHeap);
  for (uint32_t block = 5; block-- > 0;) {
    ASSERT_NE(pool.Take(block), nullptr);
    pool.OnPushed(block, 0);
  }
  pool.OnReceived();
  pool.OnReceived();
  EXPECT_EQ(pool.Take(4)->size_bytes(), 64u);
  EXPECT_EQ(pool.Take(3)->size_bytes(), 800u);
  EXPECT_EQ(pool.Take(2), nullptr);
}

// Backward passes of a model with a tied head; pushes are received after random delays.
TEST(GradientPool, StaysWithinItsBoundHoweverLatePushesAreReceived) {
  std::mt19937 random(20261122);
  for (uint32_t most = 2; most <= 5; ++most) {
    GradientPool pool(kBlocks, most, OnHeap);
    const uint64_t bound = pool.max_size_bytes();
    const auto take = [&](uint32_t block) {
      while (true) {
        while (pool.oldest().has_value() && random() % 3 == 0) pool.OnReceived();
        const std::shared_ptr<AlignedBuffer> buffer = pool.Take(block);
        if (buffer != nullptr) {
          EXPECT_GE(buffer->size_bytes(), kBlocks[block]);
          return;
        }
        ASSERT_TRUE(pool.oldest().has_value());
        pool.OnReceived();
      }
    };
    for (uint32_t virtual_worker = 0; virtual_worker < 50; ++virtual_worker) {
      take(0);
      for (uint32_t block = 4; block > 0; --block) {
        take(block);
        pool.OnPushed(block, virtual_worker);
      }
      pool.OnPushed(0, virtual_worker);
    }
    EXPECT_EQ(pool.max_size_bytes(), bound);
  }
}

}  // namespace
}  // namespace tug
