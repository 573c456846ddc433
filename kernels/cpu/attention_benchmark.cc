// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of causal attention on one thread, and its matrix products alone, at
// the shapes of two GPTs. Items are queries.
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"

namespace tug::kernels {
namespace {

AttentionShape Causal(const benchmark::State& state) {
  const int64_t seq = state.range(1);
  return {.batch = state.range(0),
          .queries = seq,
          .keys = seq,
          .heads = state.range(2),
          .head_dim = 64,
          .causal = true};
}

template <typename T>
AttentionOperands<T> OperandsIn(const AttentionShape& shape, T* qkv) {
  const int64_t width = shape.width();
  return {qkv, qkv + width, qkv + 2 * width, 3 * width, 3 * width};
}

// Arguments: batch, context, heads of 64, dropout in percent.
template <typename T>
void BM_Attention(benchmark::State& state) {
  ThreadPool pool(1);
  const AttentionShape shape = Causal(state);
  const int64_t rows = shape.batch * shape.queries;
  const std::vector<T> qkv(3 * rows * shape.width());
  std::vector<T> out(rows * shape.width()), dqkv(qkv.size());
  std::vector<float> log_sum_exp(shape.stats_size());
  const float p = static_cast<float>(state.range(3)) / 100.0f;
  for (auto _ : state) {
    const auto in = OperandsIn(shape, qkv.data());
    AttentionForward<T>(pool, {shape, in, p, DropoutKey(), out.data(), log_sum_exp.data()});
    AttentionBackward<T>(pool, {shape, in, p, DropoutKey(), /*out=*/nullptr, log_sum_exp.data(),
                                out.data(), OperandsIn(shape, dqkv.data())});
  }
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(BM_Attention<float>)
    ->Args({8, 256, 6, 0})
    ->Args({8, 256, 6, 10})
    ->Args({2, 256, 12, 0})
    ->Args({1, 1024, 12, 0})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Attention<Bf16>)
    ->Args({8, 256, 6, 0})
    ->Args({8, 256, 6, 10})
    ->Args({2, 256, 12, 0})
    ->Args({1, 1024, 12, 0})
    ->Unit(benchmark::kMillisecond);

// The two products of the forward pass and the five of the backward pass, in blocks of 64 queries,
// with no work between them.
void BM_AttentionProducts(benchmark::State& state) {
  const AttentionShape shape = Causal(state);
  std::vector<float> rows(shape.keys * 64), more(shape.keys * 64), square(64 * shape.keys);
  for (auto _ : state) {
    for (int64_t task = 0; task < shape.batch * shape.heads; ++task) {
      for (int64_t reach = 64; reach <= shape.keys; reach += 64) {
        const float* block = rows.data() + (reach - 64) * 64;
        for (int i = 0; i < 3; ++i) {
          MatMulInTask({64,
                        reach,
                        64,
                        {block, 64},
                        {rows.data(), 64, Transpose::kYes},
                        square.data(),
                        reach});
        }
        for (int i = 0; i < 2; ++i) {
          MatMulInTask({64, 64, reach, {square.data(), reach}, {rows.data(), 64}, more.data(), 64});
          MatMulInTask({reach,
                        64,
                        64,
                        {square.data(), reach, Transpose::kYes},
                        {block, 64},
                        more.data(),
                        64,
                        /*accumulate=*/true});
        }
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * shape.batch * shape.queries);
}
BENCHMARK(BM_AttentionProducts)
    ->Args({8, 256, 6})
    ->Args({2, 256, 12})
    ->Args({1, 1024, 12})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tug::kernels
