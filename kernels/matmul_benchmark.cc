// GFLOP/s of MatMul at the shapes of a GPT of width 384 (context 256): forward, input gradient,
// weight gradient, and the small products of attention. Arguments: ta, tb, m, n, k, threads.
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/matmul.h"

namespace tug::kernels {
namespace {

void BM_MatMul(benchmark::State& state) {
  const auto ta = static_cast<Transpose>(state.range(0) != 0);
  const auto tb = static_cast<Transpose>(state.range(1) != 0);
  const int64_t m = state.range(2), n = state.range(3), k = state.range(4);
  ThreadPool pool(static_cast<int>(state.range(5)));
  const std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f);
  std::vector<float> c(m * n);
  for (auto _ : state) {
    MatMul(pool, ta, tb, m, n, k, a.data(), state.range(0) ? m : k, b.data(),
           state.range(1) ? k : n, 0.0f, c.data(), n);
  }
  const double flops = 2.0 * static_cast<double>(m * n * k);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"ta", "tb", "m", "n", "k", "threads"});
  constexpr int64_t kLayers[][2] = {{1152, 384}, {384, 384}, {1536, 384}, {384, 1536}, {256, 384}};
  for (const int64_t threads : {1, 2}) {
    for (const auto& [n, k] : kLayers) {
      b->Args({0, 0, 1024, n, k, threads});
      b->Args({0, 1, 1024, k, n, threads});
      b->Args({1, 0, k, n, 1024, threads});
    }
    b->Args({0, 1, 64, 256, 64, threads});
    b->Args({0, 0, 64, 64, 256, threads});
    b->Args({1, 0, 256, 64, 64, threads});
  }
}
BENCHMARK(BM_MatMul)->Apply(Shapes)->UseRealTime();

}  // namespace
}  // namespace tug::kernels
