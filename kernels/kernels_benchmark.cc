// Time of the kernels beside the matrix products, at the shapes of a GPT of width 384 (4 samples of
// 256 tokens), on one thread; the lane's kernels on one segment of 262,144 elements.
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/adamw.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/sum.h"

namespace tug::kernels {
namespace {

constexpr int64_t kRows = 1024;
constexpr int64_t kWidth = 384;

void SetElements(benchmark::State& state, int64_t n) {
  state.SetItemsProcessed(state.iterations() * n);
}

// Argument: elements. The larger one does not fit the caches.
void BM_AdamW(benchmark::State& state) {
  const int64_t n = state.range(0);
  std::vector<float> g(n, 0.1f), w(n, 1.0f), m(n), v(n);
  for (auto _ : state) {
    AdamWStep(n, AdamWParams(), g.data(), w.data(), w.data(), m.data(), v.data());
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

void BM_LayerNormForward(benchmark::State& state) {
  ThreadPool pool(1);
  std::vector<float> x(kRows * kWidth, 0.5f), y(x.size()), gamma(kWidth), mean(kRows), rstd(kRows);
  for (auto _ : state) {
    LayerNormForward(pool, kRows, kWidth, x.data(), gamma.data(), gamma.data(), y.data(),
                     mean.data(), rstd.data());
  }
  SetElements(state, kRows * kWidth);
}
BENCHMARK(BM_LayerNormForward);

void BM_LayerNormBackward(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<float> x(kRows * kWidth, 0.5f), gamma(kWidth), mean(kRows), rstd(kRows);
  std::vector<float> dx(x.size()), dgamma(kWidth), dbeta(kWidth);
  for (auto _ : state) {
    LayerNormBackward(pool, kRows, kWidth, x.data(), x.data(), gamma.data(), mean.data(),
                      rstd.data(), dx.data(), dgamma.data(), dbeta.data());
  }
  SetElements(state, kRows * kWidth);
}
BENCHMARK(BM_LayerNormBackward);

void BM_BiasGeluForward(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<float> bias(4 * kWidth);
  std::vector<float> pre(kRows * 4 * kWidth, 0.5f), y(pre.size());
  for (auto _ : state) {
    BiasGeluForward(pool, kRows, 4 * kWidth, bias.data(), pre.data(), y.data());
  }
  SetElements(state, kRows * 4 * kWidth);
}
BENCHMARK(BM_BiasGeluForward);

void BM_GeluBackward(benchmark::State& state) {
  ThreadPool pool(1);
  const int64_t n = kRows * 4 * kWidth;
  const std::vector<float> dy(n, 0.5f), pre(n, 0.3f);
  std::vector<float> dx(n);
  for (auto _ : state) GeluBackward(pool, n, dy.data(), pre.data(), dx.data());
  SetElements(state, n);
}
BENCHMARK(BM_GeluBackward);

// Argument: dropout in percent.
void BM_BiasDropoutAdd(benchmark::State& state) {
  ThreadPool pool(1);
  const int64_t n = kRows * kWidth;
  const std::vector<float> x(n, 0.5f), bias(kWidth);
  std::vector<float> y(n);
  const float p = static_cast<float>(state.range(0)) / 100.0f;
  for (auto _ : state) {
    BiasDropoutAdd(pool, 4, n / 4, kWidth, x.data(), bias.data(), x.data(), p, DropoutKey(),
                   y.data());
  }
  SetElements(state, n);
}
BENCHMARK(BM_BiasDropoutAdd)->Arg(0)->Arg(10);

}  // namespace
}  // namespace tug::kernels
