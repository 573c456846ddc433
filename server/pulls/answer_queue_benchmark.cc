// SPDX-License-Identifier: Apache-2.0
// Cost of AnswerQueue per answer, from Add to Received, with `range(0)` pulls waiting over
// `range(1)` blocks. Target: at most 2 microseconds.
//   bazel run -c opt //server/pulls:answer_queue_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "server/pulls/answer_queue.h"

namespace tug {
namespace {

constexpr uint64_t kAnswerBytes = 4 << 20;
constexpr uint64_t kOutstanding = 8;  // answers
constexpr PeerId kWorker = WorkerPeer(7);

void PassThrough(benchmark::State& state) {
  const auto waiting = static_cast<uint32_t>(state.range(0));
  const auto blocks = static_cast<uint32_t>(state.range(1));
  AnswerQueue queue({.credit_bytes = kOutstanding * kAnswerBytes,
                     .max_workers = 1,
                     .lost_after = absl::Seconds(10)});
  queue.Admit(kWorker);
  const absl::Time now = absl::UnixEpoch();
  const auto add = [&](uint32_t first_id) {
    WaitingPull pull;
    pull.header.kind = MessageKind::kPull;
    pull.header.sender = kWorker;
    pull.header.block = first_id % blocks;
    pull.header.first_segment = first_id / blocks;
    queue.Add(std::move(pull), first_id, kAnswerBytes);
  };
  for (uint32_t id = 0; id < waiting + kOutstanding; ++id) add(id);
  std::vector<AnswerQueue::Turn> outstanding;  // ring buffer
  while (outstanding.size() < kOutstanding) outstanding.push_back(*queue.Next(kWorker, now));
  size_t oldest = 0;
  for (auto _ : state) {
    AnswerQueue::Turn& turn = outstanding[oldest];
    const WireHeader& header = turn.pull.header;
    const uint32_t first_id = header.first_segment * blocks + header.block;
    queue.Received(kWorker, turn.number);
    add(first_id);
    turn = *queue.Next(kWorker, now);
    oldest = (oldest + 1) % kOutstanding;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(PassThrough)->Args({1, 1})->Args({100, 20})->Args({10'000, 200})->Args({1'000'000, 2000});

}  // namespace
}  // namespace tug

BENCHMARK_MAIN();
