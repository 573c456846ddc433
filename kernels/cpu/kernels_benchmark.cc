// SPDX-License-Identifier: Apache-2.0
// Time of the kernels other than matrix products, at the shapes of a GPT of width 384 (4 samples of
// 256 tokens), on one thread; a lane's kernels on one segment of 262,144 elements.
#include <cstring>
#include <type_traits>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/bf16.h"
#include "kernels/bias.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/layernorm.h"
#include "kernels/sum.h"

namespace tug::kernels {
namespace {

constexpr int64_t kRows = 1024;
constexpr int64_t kWidth = 384;

void SetElements(benchmark::State& state, int64_t n) {
  state.SetItemsProcessed(state.iterations() * n);
}

// Sets the traffic: `arrays` elements of T are read or written for each of n.
template <typename T>
void SetTraffic(benchmark::State& state, int64_t n, int64_t arrays) {
  SetElements(state, n);
  state.SetBytesProcessed(state.iterations() * n * arrays * static_cast<int64_t>(sizeof(T)));
}

// Values spread over (-1, 1), none denormal.
template <typename T>
std::vector<T> Filled(int64_t n) {
  std::vector<float> wide(n);
  for (int64_t i = 0; i < n; ++i) wide[i] = static_cast<float>(i % 1999 - 999) * 1e-3f;
  if constexpr (std::is_same_v<T, float>) {
    return wide;
  } else {
    std::vector<T> narrow(n);
    Bf16FromFloat(wide.data(), narrow.data(), n);
    return narrow;
  }
}

// Argument: elements. The larger number does not fit the caches.
void BM_AdamW(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> g(n, 0.1f), w(n, 1.0f), m(n), v(n);
  for (auto _ : state) {
    AdamWStep(AdamWParams(), {n, g.data(), w.data(), w.data(), m.data(), v.data()});
  }
  SetElements(state, n);
}
BENCHMARK(BM_AdamW)->Arg(262144)->Arg(10800000);

void BM_AddAndCheck(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> src(n, 0.1f), acc(n);
  for (auto _ : state) benchmark::DoNotOptimize(AddAndCheck(src.data(), acc.data(), n));
  SetElements(state, n);
}
BENCHMARK(BM_AddAndCheck)->Arg(262144)->Arg(10800000);

void BM_SumOfSquares(benchmark::State& state) {
  const int64_t n = state.range(0);
  const std::vector<float> x(n, 0.1f);
  for (auto _ : state) benchmark::DoNotOptimize(SumOfSquares(x.data(), n));
  SetElements(state, n);
}
BENCHMARK(BM_SumOfSquares)->Arg(262144)->Arg(10800000);

// Memory bandwidth, for comparison: a copy with the traffic of one GELU.
template <typename T>
void BM_Copy(benchmark::State& state) {
  const std::vector<T> src = Filled<T>(kRows * 4 * kWidth);
  std::vector<T> dst(src.size());
  for (auto _ : state) {
    std::memcpy(dst.data(), src.data(), src.size() * sizeof(T));
    benchmark::ClobberMemory();
  }
  SetTraffic<T>(state, kRows * 4 * kWidth, 2);
}
BENCHMARK(BM_Copy<float>);
BENCHMARK(BM_Copy<Bf16>);

template <typename T>
void BM_LayerNormForward(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<T> x = Filled<T>(kRows * kWidth);
  std::vector<T> y(x.size());
  std::vector<float> gamma(kWidth), mean(kRows), rstd(kRows);
  for (auto _ : state) {
    LayerNormForward<T>(pool, {kRows, kWidth, x.data(), gamma.data(), gamma.data(), y.data(),
                               mean.data(), rstd.data()});
  }
  SetTraffic<T>(state, kRows * kWidth, 2);
}
BENCHMARK(BM_LayerNormForward<float>);
BENCHMARK(BM_LayerNormForward<Bf16>);

// Argument: dropout in percent.
template <typename T>
void BM_ResidualLayerNormForward(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<T> x = Filled<T>(kRows * kWidth), residual = x;
  std::vector<T> sum(x.size()), y(x.size());
  std::vector<float> gamma(kWidth), mean(kRows), rstd(kRows);
  const float p = static_cast<float>(state.range(0)) / 100.0f;
  for (auto _ : state) {
    ResidualLayerNormForward<T>(pool, {{4, kRows / 4 * kWidth, kWidth, x.data(), gamma.data(),
                                        residual.data(), p, DropoutKey(), sum.data()},
                                       gamma.data(),
                                       gamma.data(),
                                       y.data(),
                                       mean.data(),
                                       rstd.data()});
  }
  SetTraffic<T>(state, kRows * kWidth, 4);
}
BENCHMARK(BM_ResidualLayerNormForward<float>)->Arg(0)->Arg(10);
BENCHMARK(BM_ResidualLayerNormForward<Bf16>)->Arg(0)->Arg(10);

template <typename T>
void BM_LayerNormBackward(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<T> x = Filled<T>(kRows * kWidth);
  const std::vector<float> gamma(kWidth), mean(kRows), rstd(kRows);
  std::vector<T> dx(x.size());
  std::vector<float> dgamma(kWidth), dbeta(kWidth);
  for (auto _ : state) {
    LayerNormBackward<T>(pool,
                         {kRows, kWidth, x.data(), x.data(), gamma.data(), mean.data(), rstd.data(),
                          /*accumulate=*/true, dx.data(), dgamma.data(), dbeta.data()});
  }
  SetTraffic<T>(state, kRows * kWidth, 4);
}
BENCHMARK(BM_LayerNormBackward<float>);
BENCHMARK(BM_LayerNormBackward<Bf16>);

// Argument: an Activation.
template <typename T>
void BM_BiasActivationForward(benchmark::State& state) {
  ThreadPool pool(1);
  const auto activation = static_cast<Activation>(state.range(0));
  const std::vector<float> bias(4 * kWidth);
  std::vector<T> pre = Filled<T>(kRows * 4 * kWidth), y(pre.size());
  for (auto _ : state) {
    BiasActivationForward(pool, activation, kRows, 4 * kWidth, bias.data(), pre.data(), y.data());
  }
  SetTraffic<T>(state, kRows * 4 * kWidth, 3);
}
BENCHMARK(BM_BiasActivationForward<float>)->DenseRange(0, 1);
BENCHMARK(BM_BiasActivationForward<Bf16>)->DenseRange(0, 1);

template <typename T>
void BM_ActivationBackward(benchmark::State& state) {
  ThreadPool pool(1);
  const auto activation = static_cast<Activation>(state.range(0));
  const int64_t n = kRows * 4 * kWidth;
  const std::vector<T> dy = Filled<T>(n), pre = dy;
  std::vector<T> dx(n);
  for (auto _ : state) {
    ActivationBackward(pool, activation, n, dy.data(), pre.data(), dx.data());
  }
  SetTraffic<T>(state, n, 3);
}
BENCHMARK(BM_ActivationBackward<float>)->DenseRange(0, 1);
BENCHMARK(BM_ActivationBackward<Bf16>)->DenseRange(0, 1);

// Argument: dropout in percent.
template <typename T>
void BM_DropoutAdd(benchmark::State& state) {
  ThreadPool pool(1);
  const int64_t n = kRows * kWidth;
  const std::vector<T> x = Filled<T>(n), residual = x;
  const std::vector<float> bias(kWidth);
  std::vector<T> y(n);
  const float p = static_cast<float>(state.range(0)) / 100.0f;
  for (auto _ : state) {
    DropoutAdd<T>(pool, {4, n / 4, kWidth, x.data(), bias.data(), residual.data(), p, DropoutKey(),
                         y.data()});
  }
  SetTraffic<T>(state, n, 3);
}
BENCHMARK(BM_DropoutAdd<float>)->Arg(0)->Arg(10);
BENCHMARK(BM_DropoutAdd<Bf16>)->Arg(0)->Arg(10);

template <typename T>
void BM_BiasGradient(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<T> dy = Filled<T>(kRows * 4 * kWidth);
  std::vector<float> dbias(4 * kWidth);
  for (auto _ : state) BiasGradient(pool, kRows, 4 * kWidth, dy.data(), dbias.data());
  SetTraffic<T>(state, kRows * 4 * kWidth, 1);
}
BENCHMARK(BM_BiasGradient<float>);
BENCHMARK(BM_BiasGradient<Bf16>);

// Argument: symbols. Counts the traffic of the logits, read once, and of the gradient.
template <typename T>
void BM_CrossEntropy(benchmark::State& state) {
  ThreadPool pool(1);
  const int64_t vocab = state.range(0), rows = 6400000 / vocab;
  const std::vector<float> logits = Filled<float>(rows * vocab);
  const std::vector<int32_t> targets(rows, 7);
  std::vector<T> gradient(logits.size());
  std::vector<float> losses(rows);
  for (auto _ : state) {
    CrossEntropy<T>(pool, {rows, vocab, vocab, logits.data(), targets.data(), Objective(),
                           gradient.data(), losses.data(), nullptr});
  }
  SetElements(state, rows * vocab);
  state.SetBytesProcessed(state.iterations() * rows * vocab *
                          static_cast<int64_t>(sizeof(float) + sizeof(T)));
}
BENCHMARK(BM_CrossEntropy<float>)->Arg(256)->Arg(50257);
BENCHMARK(BM_CrossEntropy<Bf16>)->Arg(256)->Arg(50257);

}  // namespace
}  // namespace tug::kernels
