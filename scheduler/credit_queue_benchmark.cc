// SPDX-License-Identifier: Apache-2.0
// Cost of the scheduler per partition, from Enqueue to Committed, with `range(0)` partitions
// waiting over `range(1)` blocks. Target: at most 2 microseconds.
//   bazel run -c opt //scheduler:credit_queue_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/credit_queue.h"

namespace tug {
namespace {

constexpr uint64_t kPartitionBytes = 4 << 20;
constexpr uint64_t kOutstanding = 8;  // partitions

void PassThrough(benchmark::State& state, CommConfig::Scheduler policy) {
  const auto waiting = static_cast<uint64_t>(state.range(0));
  const auto blocks = static_cast<uint32_t>(state.range(1));
  CreditQueue queue(PolicyOf(policy), kOutstanding * kPartitionBytes);
  std::mt19937 random(7);
  std::vector<CreditQueue::Ticket> ticket_of(waiting + kOutstanding);
  const auto enqueue = [&](uint64_t item) {
    const uint32_t block = random() % blocks;
    ticket_of[item] = queue.Enqueue({block, block, kPartitionBytes, item});
  };
  for (uint64_t item = 0; item < ticket_of.size(); ++item) enqueue(item);
  std::vector<uint64_t> outstanding;  // ring buffer
  while (outstanding.size() < kOutstanding) outstanding.push_back(*queue.Next());
  size_t oldest = 0;
  for (auto _ : state) {
    const uint64_t item = outstanding[oldest];
    queue.Received(ticket_of[item]);
    outstanding[oldest] = *queue.Next();
    queue.Committed(ticket_of[item]);
    enqueue(item);
    oldest = (oldest + 1) % kOutstanding;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(PassThrough, Fifo, CommConfig::FIFO)->Args({10'000, 200});
BENCHMARK_CAPTURE(PassThrough, Priority, CommConfig::PRIORITY)->Args({10'000, 200});
BENCHMARK_CAPTURE(PassThrough, ByteScheduler, CommConfig::BYTESCHEDULER)
    ->Args({1, 1})
    ->Args({100, 20})
    ->Args({10'000, 200})
    ->Args({1'000'000, 2000});

}  // namespace
}  // namespace tug

BENCHMARK_MAIN();
