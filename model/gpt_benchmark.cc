// Speed of the model of the speed comparison (6 layers, 384 wide, 6 heads, context 256, 256
// symbols) at 4 samples, what one of two workers computes in a step: the whole pass, then each op
// of a layer at its shapes, so that their sum x 6 explains the whole.
//
//   bazel run //model:gpt_benchmark
#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/lease.h"
#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/bias.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "model/gpt.h"
#include "model/layout.h"

namespace tug {
namespace {

constexpr int64_t kLayers = 6, kWidth = 384, kHeads = 6, kContext = 256, kSymbols = 256;
constexpr int64_t kSamples = 4, kRows = kSamples * kContext;

struct Workload {
  int64_t layers, width, heads, context, symbols, samples;
};
constexpr Workload kCompared = {kLayers, kWidth, kHeads, kContext, kSymbols, kSamples};
// Half of the batch of deploy/compare/tinyshakespeare.py.
constexpr Workload kTinyShakespeare = {4, 128, 4, 64, 65, 6};

ModelConfig ConfigOf(const Workload& workload, double dropout) {
  ModelConfig config;
  config.set_layers(static_cast<uint32_t>(workload.layers));
  config.set_width(static_cast<uint32_t>(workload.width));
  config.set_heads(static_cast<uint32_t>(workload.heads));
  config.set_context(static_cast<uint32_t>(workload.context));
  config.set_dropout(dropout);
  config.set_tied_head(true);
  config.set_bias(true);
  return config;
}

AlignedBuffer RandomBuffer(int64_t size, float mean = 0, float std = 1) {
  AlignedBuffer buffer(static_cast<size_t>(size) * sizeof(float));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(mean, std);
  for (float& value : buffer.floats()) value = normal(random);
  return buffer;
}

// Args: threads, dropout in percent.
void BM_ForwardBackward(benchmark::State& state, const Workload& workload) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const auto symbols = static_cast<uint32_t>(workload.symbols);
  auto gpt = Gpt::Create(ConfigOf(workload, static_cast<double>(state.range(1)) / 100), symbols,
                         static_cast<int>(workload.samples), pool);
  TUG_CHECK_OK(gpt);
  Gpt& model = **gpt;
  std::vector<AlignedBuffer> weights, gradients;
  for (int b = 0; b < model.num_blocks(); ++b) {
    const auto size = static_cast<int64_t>(ElementCount(model.blocks().blocks(b)));
    weights.push_back(RandomBuffer(size, 0, 0.02f));
    gradients.push_back(RandomBuffer(size));
    model.BindWeights(b, weights[b].floats());
    model.BindGradient(b, gradients[b].floats());
  }
  MicroBatch batch;
  batch.samples = static_cast<int>(workload.samples);
  batch.training = true;
  std::mt19937 random(2);
  std::vector<int32_t> tokens(static_cast<size_t>(workload.samples * workload.context));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % symbols);
  batch.tokens = batch.targets = tokens;
  for (auto _ : state) {
    model.Start(batch);
    for (int b = 0; b < model.num_blocks(); ++b) model.Forward(b);
    for (int b = model.num_blocks() - 1; b >= 0; --b) model.Backward(b);
  }
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens.size()),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(BM_ForwardBackward, compared, kCompared)
    ->Args({1, 0})
    ->Args({1, 10})
    ->Args({2, 0})
    ->ArgNames({"threads", "dropout"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_ForwardBackward, tinyshakespeare, kTinyShakespeare)
    ->Args({1, 0})
    ->ArgNames({"threads", "dropout"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// A product of a layer, as kernels/matmul.h takes it.
struct Product {
  const char* name;
  kernels::Transpose ta, tb;
  int64_t m, n, k;
};

void BM_MatMul(benchmark::State& state, const Product& product) {
  ThreadPool pool(1);
  const auto [name, ta, tb, m, n, k] = product;
  const AlignedBuffer a = RandomBuffer(m * k), b = RandomBuffer(k * n);
  AlignedBuffer c = RandomBuffer(m * n);
  const int64_t lda = ta == kernels::Transpose::kYes ? m : k;
  const int64_t ldb = tb == kernels::Transpose::kYes ? k : n;
  for (auto _ : state) {
    kernels::MatMul(pool, ta, tb, m, n, k, a.floats().data(), lda, b.floats().data(), ldb, 0,
                    c.floats().data(), n);
  }
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(m * n * k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterProducts() {
  using enum kernels::Transpose;
  const std::pair<std::string, std::pair<int64_t, int64_t>> linears[] = {
      {"qkv", {kWidth, 3 * kWidth}},
      {"attn_proj", {kWidth, kWidth}},
      {"fc", {kWidth, 4 * kWidth}},
      {"mlp_proj", {4 * kWidth, kWidth}}};
  for (const auto& [name, sizes] : linears) {
    const auto [in, out] = sizes;
    const Product products[] = {{"forward", kNo, kNo, kRows, out, in},
                                {"weight_gradient", kYes, kNo, in, out, kRows},
                                {"input_gradient", kNo, kYes, kRows, in, out}};
    for (const Product& product : products) {
      benchmark::RegisterBenchmark(
          ("BM_MatMul/" + name + "/" + product.name).c_str(),
          [product](benchmark::State& state) { BM_MatMul(state, product); })
          ->Unit(benchmark::kMillisecond);
    }
  }
}

// The other ops, one call each, at one thread without dropout. Arrays are as wide as the widest op
// needs.
void RegisterOthers() {
  static constexpr int64_t kWide = 4 * kWidth;
  struct Arrays {
    ThreadPool pool{1};
    AlignedBuffer x = RandomBuffer(kRows * kWide), y = RandomBuffer(kRows * kWide);
    AlignedBuffer z = RandomBuffer(kRows * kWide), probs = RandomBuffer(kRows * kHeads * kContext);
    AlignedBuffer v = RandomBuffer(kWide, 1), u = RandomBuffer(kWide),
                  stats = RandomBuffer(2 * kRows, 1);
    std::vector<int32_t> targets = std::vector<int32_t>(kRows, 7);
  };
  const auto add = [](const std::string& name, std::function<void(Arrays&)> op) {
    benchmark::RegisterBenchmark(name.c_str(), [op = std::move(op)](benchmark::State& state) {
      Arrays arrays;
      for (auto _ : state) op(arrays);
    })->Unit(benchmark::kMillisecond);
  };
  static constexpr kernels::AttentionShape kShape{kSamples, kContext, kHeads, kWidth / kHeads};
  add("BM_AttentionForward", [](Arrays& a) {
    kernels::CausalAttentionForward(a.pool, kShape, a.x.floats().data(), 0, {},
                                    a.probs.floats().data(), a.y.floats().data());
  });
  add("BM_AttentionBackward", [](Arrays& a) {
    kernels::CausalAttentionBackward(a.pool, kShape, a.y.floats().data(), a.x.floats().data(),
                                     a.probs.floats().data(), 0, {}, a.z.floats().data());
  });
  add("BM_LayerNormForward", [](Arrays& a) {
    kernels::LayerNormForward(a.pool, kRows, kWidth, a.x.floats().data(), a.v.floats().data(),
                              a.u.floats().data(), a.y.floats().data(), a.stats.floats().data(),
                              a.stats.floats().data() + kRows);
  });
  add("BM_LayerNormBackward", [](Arrays& a) {
    kernels::LayerNormBackward(a.pool, kRows, kWidth, a.y.floats().data(), a.x.floats().data(),
                               a.v.floats().data(), a.stats.floats().data(),
                               a.stats.floats().data() + kRows, a.z.floats().data(),
                               a.u.floats().data(), a.u.floats().data());
  });
  add("BM_BiasGelu", [](Arrays& a) {
    kernels::BiasGeluForward(a.pool, kRows, kWide, a.u.floats().data(), a.x.floats().data(),
                             a.y.floats().data());
  });
  add("BM_GeluBackward", [](Arrays& a) {
    kernels::GeluBackward(a.pool, kRows * kWide, a.y.floats().data(), a.x.floats().data(),
                          a.y.floats().data());
  });
  add("BM_AddBiasOfQkv", [](Arrays& a) {
    kernels::AddBias(a.pool, kRows, 3 * kWidth, a.u.floats().data(), a.x.floats().data());
  });
  add("BM_BiasGradientOfFc", [](Arrays& a) {
    kernels::BiasGradient(a.pool, kRows, kWide, a.x.floats().data(), a.u.floats().data());
  });
  add("BM_BiasResidualAdd", [](Arrays& a) {
    kernels::BiasDropoutAdd(a.pool, kSamples, kContext * kWidth, kWidth, a.x.floats().data(),
                            a.u.floats().data(), a.y.floats().data(), 0, {}, a.z.floats().data());
  });
  add("BM_BiasResidualDropoutAdd", [](Arrays& a) {
    kernels::BiasDropoutAdd(a.pool, kSamples, kContext * kWidth, kWidth, a.x.floats().data(),
                            a.u.floats().data(), a.y.floats().data(), 0.1f, {},
                            a.z.floats().data());
  });
  add("BM_CrossEntropy", [](Arrays& a) {
    kernels::CrossEntropy(a.pool, kRows, kSymbols, a.x.floats().data(), a.targets.data(),
                          a.stats.floats().data());
  });
}

const bool kRegistered = (RegisterProducts(), RegisterOthers(), true);

}  // namespace
}  // namespace tug
