// SPDX-License-Identifier: Apache-2.0
// Tokens/s of the generator on one thread: reading a prompt of 128 tokens, and writing after it.
// Arguments: layers, width, symbols (heads of 64). Weights are random, within +-0.02.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "benchmark/benchmark.h"
#include "model/layout.h"
#include "model/transformer/generator.h"

namespace tug {
namespace {

constexpr size_t kPrompt = 128;

struct Rig {
  explicit Rig(const benchmark::State& state) {
    ModelConfig config;
    config.set_family(ModelConfig::DECODER);
    config.set_norm(ModelConfig::PRE);
    config.set_activation(ModelConfig::GELU);
    config.set_layers(static_cast<uint32_t>(state.range(0)));
    config.set_width(static_cast<uint32_t>(state.range(1)));
    config.set_mlp_width(4 * config.width());
    config.set_heads(config.width() / 64);
    config.set_context(1024);
    config.set_tied_head(true);
    config.set_bias(true);
    const auto symbols = static_cast<uint32_t>(state.range(2));
    std::vector<std::span<const float>> views;
    uint32_t random = 1;
    const BlockTable table = ModelLayout(config, symbols, /*classes=*/0);
    for (const BlockSpec& block : table.blocks()) {
      std::vector<float>& values = weights.emplace_back(ElementCount(block));
      for (float& value : values) {
        random = random * 1664525 + 1013904223;
        value = 0.02f * (static_cast<float>(random >> 8) / 8388608.0f - 1.0f);
      }
    }
    for (const auto& block : weights) views.emplace_back(block);
    auto created = Generator::Create(config, symbols, views, pool);
    TUG_CHECK(created.ok());
    generator = *std::move(created);
  }

  ThreadPool pool{1};
  std::vector<std::vector<float>> weights;
  std::unique_ptr<Generator> generator;
  const std::vector<int32_t> prompt = std::vector<int32_t>(kPrompt, 3);
};

void BM_Read(benchmark::State& state) {
  Rig rig(state);
  for (auto _ : state) {
    rig.generator->Reset();
    benchmark::DoNotOptimize(rig.generator->Append(rig.prompt).data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPrompt));
}
BENCHMARK(BM_Read)->Args({6, 384, 256})->Args({12, 768, 50257})->Unit(benchmark::kMillisecond);

void BM_Write(benchmark::State& state) {
  Rig rig(state);
  rig.generator->Append(rig.prompt);
  const std::vector<int32_t> token = {5};
  for (auto _ : state) benchmark::DoNotOptimize(rig.generator->Append(token).data());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Write)->Args({6, 384, 256})->Args({12, 768, 50257})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tug
