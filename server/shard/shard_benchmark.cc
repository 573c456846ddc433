// SPDX-License-Identifier: Apache-2.0
// A lane's work on pushes and pulls without a network: S virtual workers push every partition of
// every block and pull the new weights, in rotating order.
//   bazel run -c opt //server/shard:shard_benchmark
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "server/shard/shard.h"
#include "server/sums/push_frames_test_support.h"

namespace tug {
namespace {

constexpr uint32_t kLane = 256;

ShardOptions OptionsOf(const benchmark::State& state) {
  ShardOptions options;
  options.lane = kLane;
  options.virtual_workers = static_cast<uint32_t>(state.range(2));
  options.optimizer.set_learning_rate(1e-3);
  options.optimizer.set_clip(state.range(3) == 0 ? OptimizerConfig::OFF : OptimizerConfig::GLOBAL);
  options.optimizer.set_clip_norm(1.0);
  options.optimizer.mutable_adamw()->set_beta1(0.9);
  options.optimizer.mutable_adamw()->set_beta2(0.99);
  options.optimizer.mutable_adamw()->set_epsilon(1e-8);
  options.lane_of_segment.assign(static_cast<size_t>(state.range(1)), kLane);
  options.block_names = {"block"};
  options.parking_bytes = uint64_t{1} << 40;  // nothing is deferred
  options.pull_format = state.range(4) == 1 ? CommConfig::BF16 : CommConfig::FP32;
  return options;
}

// Arguments: elements per segment, segments, virtual workers, clip (0: OFF, 1: GLOBAL), format of
// pushes and pulls (0: FP32, 1: bf16), payload in the sender's memory (0, 1).
void BM_PushPull(benchmark::State& state) {
  const auto elements = static_cast<uint64_t>(state.range(0));
  const auto segments = static_cast<uint32_t>(state.range(1));
  const auto virtual_workers = static_cast<uint32_t>(state.range(2));
  const bool bf16 = state.range(4) == 1;
  BlockTable blocks;
  blocks.add_blocks()->add_tensors()->add_shape(elements * segments);
  const SegmentTable table = *SegmentTable::Create(blocks, elements);
  const ShardOptions options = OptionsOf(state);
  uint64_t answers = 0;
  Shard shard(options, table,
              {.send = [&](Outgoing m) { answers += m.header.kind == MessageKind::kWeights; },
               .snapshot = [](const SegmentSnapshot&) {},
               .notice = [&](const ShardNotice& n) { state.SkipWithError(n.text.c_str()); }});

  const std::vector<float> zeros(elements);
  const std::vector<std::byte> frames = EncodeFrames(zeros, elements, {kBf16Frame});
  const size_t size_bytes = bf16 ? frames.size() : elements * sizeof(float);
  std::vector<std::shared_ptr<AlignedBuffer>> gradients;
  for (uint32_t i = 0; i < 64; ++i) {
    gradients.push_back(std::make_shared<AlignedBuffer>(size_bytes));
    if (bf16) std::ranges::copy(frames, gradients.back()->data());
  }
  Message push;
  push.header.segment_count = 1;
  push.header.virtual_worker_count = 1;
  push.header.token_count = 1;
  push.header.codec = bf16 ? Codec::kFrames : Codec::kNone;
  push.home = state.range(5) == 1 ? Home::kSender : Home::kReceiver;
  Message pull;
  pull.header.kind = MessageKind::kPull;
  pull.header.segment_count = 1;
  pull.header.codec = bf16 ? Codec::kBf16 : Codec::kNone;
  const absl::Time now = absl::UnixEpoch();
  uint64_t clock = 0;
  for (auto _ : state) {
    for (uint32_t vw = 0; vw < virtual_workers; ++vw) {
      push.header.virtual_worker = vw;
      push.header.sender = pull.header.sender = WorkerPeer(vw);
      push.header.clock = clock;
      pull.header.clock = clock + 1;
      for (uint32_t s = 0; s < segments; ++s) {
        push.header.first_segment = pull.header.first_segment = s;
        const auto& gradient = gradients[(s + vw) % gradients.size()];
        push.payload = Lease(gradient, std::span<const std::byte>(gradient->data(), size_bytes));
        shard.OnMessage(push, now);
        shard.OnMessage(pull, now);
      }
    }
    ++clock;
  }
  const uint64_t pushes = clock * virtual_workers * segments;
  if (answers != pushes) state.SkipWithError("not every pull was answered");
  state.SetItemsProcessed(static_cast<int64_t>(pushes));
  state.SetBytesProcessed(static_cast<int64_t>(pushes * size_bytes));
}
BENCHMARK(BM_PushPull)
    ->ArgNames({"elements", "segments", "virtual_workers", "clip", "bf16", "shared"})
    ->Args({1024, 4096, 1, 0, 0, 0})
    ->Args({1024, 4096, 1, 0, 0, 1})
    ->Args({1024, 4096, 4, 0, 0, 0})
    ->Args({1024, 4096, 4, 1, 0, 0})
    ->Args({1024, 4096, 16, 1, 0, 0})
    ->Args({1024, 4096, 64, 1, 0, 0})
    ->Args({262144, 32, 1, 0, 0, 0})
    ->Args({262144, 32, 1, 0, 1, 0})
    ->Args({262144, 32, 2, 1, 0, 0})
    ->Args({262144, 32, 2, 1, 0, 1})
    ->Args({262144, 32, 2, 1, 1, 0})
    ->Args({262144, 32, 2, 1, 1, 1})
    ->Args({262144, 32, 8, 1, 0, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tug

BENCHMARK_MAIN();
