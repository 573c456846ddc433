// SPDX-License-Identifier: Apache-2.0
#include "base/memory/block_pool.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(BlockPool, GivesABlockOutAgain) {
  BlockPool pool;
  for (const size_t size : {size_t{1}, size_t{64}, size_t{65}, BlockPool::kMaxBlockBytes}) {
    std::byte* const first = pool.Take(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % BlockPool::kAlignment, 0u);
    std::memset(first, 1, size);
    pool.Give(first, size);
    std::byte* const second = pool.Take(size);
    EXPECT_EQ(second, first) << size;
    pool.Give(second, size);
  }
}

TEST(BlockPool, KeepsNoMoreThanItsBound) {
  BlockPool pool;
  std::byte* const large = pool.Take(BlockPool::kMaxBlockBytes + 1);
  pool.Give(large, BlockPool::kMaxBlockBytes + 1);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  std::vector<std::byte*> blocks(BlockPool::kMaxKeptBytes / BlockPool::kMaxBlockBytes + 3);
  for (std::byte*& block : blocks) block = pool.Take(BlockPool::kMaxBlockBytes);
  for (std::byte* const block : blocks) pool.Give(block, BlockPool::kMaxBlockBytes);
  EXPECT_EQ(pool.kept_bytes(), BlockPool::kMaxKeptBytes);
}

TEST(BlockPool, LetsGoOfARarePeak) {
  constexpr size_t kBytes = 1024;
  BlockPool pool;
  std::vector<std::byte*> peak(64);
  for (std::byte*& block : peak) block = pool.Take(kBytes);
  for (std::byte* const block : peak) pool.Give(block, kBytes);
  EXPECT_EQ(pool.kept_bytes(), 64 * kBytes);
  // From here on at most two blocks are in use at a time.
  const auto take_a_window = [&pool] {
    for (size_t i = 0; i < BlockPool::kTrimTakes; i += 2) {
      std::byte* const one = pool.Take(kBytes);
      std::byte* const other = pool.Take(kBytes);
      pool.Give(one, kBytes);
      pool.Give(other, kBytes);
    }
  };
  take_a_window();  // this window still contains the peak
  EXPECT_EQ(pool.kept_bytes(), 64 * kBytes);
  take_a_window();
  EXPECT_EQ(pool.kept_bytes(), (64 - 62 / 2) * kBytes);
  for (int i = 0; i < 8; ++i) take_a_window();
  EXPECT_LE(pool.kept_bytes(), 3 * kBytes);
  EXPECT_GE(pool.kept_bytes(), 2 * kBytes) << "what is needed stays";
}

TEST(BlockPool, BlocksOutliveTheFirstOwnerAndCrossThreads) {
  auto pool = std::make_shared<BlockPool>();
  std::shared_ptr<PoolBlock> kept = NewPoolBlock(pool, 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([pool, t] {
      for (int i = 0; i < 1000; ++i) {
        const std::shared_ptr<PoolBlock> block = NewPoolBlock(pool, 1 + i % 5000);
        std::memset(block->data(), t, block->size_bytes());
      }
    });
  }
  pool.reset();
  for (std::thread& thread : threads) thread.join();
  std::memset(kept->data(), 1, kept->size_bytes());
  kept.reset();
}

}  // namespace
}  // namespace tug
