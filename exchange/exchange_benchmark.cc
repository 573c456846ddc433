// SPDX-License-Identifier: Apache-2.0
// Cost of the exchange state machine per partition, without a transport, and how it grows with the
// number of open requests.
//   bazel run //exchange:exchange_benchmark
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>
#include <vector>

#include "exchange/exchange.h"

namespace tug {
namespace {

constexpr uint64_t kPartitionElements = 1024;  // 4 KiB
constexpr uint64_t kOutstanding = 64;

// Pushes and pulls blocks of `range(0)` partitions, 64 pushes outstanding; every message is
// answered at once.
void PushPull(benchmark::State& state) {
  const auto partitions = static_cast<uint64_t>(state.range(0));
  BlockTable blocks;
  blocks.add_blocks()->add_tensors()->add_shape(partitions * kPartitionElements);
  const SegmentTable table = *SegmentTable::Create(blocks, kPartitionElements);
  ExchangeOptions options;
  options.lane_of_segment.assign(table.size(), 0);
  options.comm.set_partition_bytes(kPartitionElements * sizeof(float));
  options.comm.set_credit_bytes(kOutstanding * kPartitionElements * sizeof(float));
  options.comm.set_scheduler(CommConfig::BYTESCHEDULER);
  options.comm.set_resend_ms(10000);
  std::vector<Outgoing> sent;
  size_t done = 0;
  Exchange exchange(options, table,
                    {.send = [&](Outgoing message) { sent.push_back(std::move(message)); },
                     .pulled = [&](const BlockPulled&) { ++done; },
                     .committed = [&](PushCommitted) { ++done; }});
  const auto gradient = std::make_shared<AlignedBuffer>(table.block_elements(0) * sizeof(float));
  const Lease lease(gradient, std::as_const(*gradient).floats());
  std::vector<float> weights(table.block_elements(0));
  const absl::Time now = absl::UnixEpoch();
  uint64_t clock = 0;
  for (auto _ : state) {
    exchange.Push({0, 0, 1, clock, 1, lease}, now);
    exchange.Pull({0, Want::kExact, ++clock, weights}, now);
    done = 0;
    std::vector<Outgoing> batch;
    while (done < 2) {
      std::swap(batch, sent);
      for (Outgoing& message : batch) {
        Message answer{message.header, lease};
        answer.header.sender = message.to;
        answer.payload = lease.Slice(0, kPartitionElements * sizeof(float));
        if (message.header.kind == MessageKind::kPush) {
          answer.header.kind = MessageKind::kReceived;
          exchange.OnMessage(answer, now);
          answer.header.kind = MessageKind::kCommitted;
        } else {
          answer.header.kind = MessageKind::kWeights;
          answer.header.version = message.header.clock;
        }
        exchange.OnMessage(answer, now);
      }
      batch.clear();
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PushPull)->Arg(1)->Arg(64)->Arg(4096)->Arg(65536);

}  // namespace
}  // namespace tug

BENCHMARK_MAIN();
