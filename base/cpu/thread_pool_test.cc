// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/thread_pool.h"

#include <atomic>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      pool.ParallelFor(n, [&](int64_t i) { ++runs[i]; });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, ResultsAreVisibleAfterParallelForAcrossManyRounds) {
  ThreadPool pool(3);
  std::vector<int64_t> cells(5, 0);
  for (int round = 0; round < 5000; ++round) {
    pool.ParallelFor(5, [&](int64_t i) { cells[i] += i; });
  }
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(cells[i], 5000 * i);
}

TEST(ThreadPool, UsesAllItsThreadsAtOnce) {
  constexpr int kThreads = 3;
  ThreadPool pool(kThreads);
  // Each task waits for the two others: this ends only if three threads run at the same time.
  auto* barrier = new absl::Barrier(kThreads);
  std::atomic<int> deleters{0};
  pool.ParallelFor(kThreads, [&](int64_t) {
    if (barrier->Block()) {
      ++deleters;
      delete barrier;
    }
  });
  EXPECT_EQ(deleters.load(), 1);
}

TEST(ThreadPool, RunsInlineInOrderWithOneThread) {
  ThreadPool pool(1);
  std::vector<int64_t> order;
  pool.ParallelFor(4, [&](int64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(ThreadPool, MayBeDestroyedUnused) { ThreadPool pool(4); }

}  // namespace
}  // namespace tug
