// SPDX-License-Identifier: Apache-2.0
// The products of linear.h compared with oneDNN alone: one primitive over the whole matrices on its
// own OpenMP threads, weights packed as it prefers. GPT of width 384, 2,048 rows, and of width 768,
// 512 rows. Our runs and oneDNN's alternate; the counters are those of the fastest run of each.
// Arguments: rows, in, out, threads.
#include <algorithm>
#include <ctime>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/cpu/thread_pool.h"
#include "base/memory/lease.h"
#include "benchmark/benchmark.h"
#include "kernels/bf16.h"
#include "kernels/cpu/linear/onednn_matmul.h"
#include "kernels/linear.h"

extern "C" void omp_set_num_threads(int);  // from libgomp, see matmul_cpu.cc

namespace tug::kernels {
namespace {

using dnnl::memory;

enum class Product { kForward, kInputGradient, kWeightGradient };

template <typename T>
constexpr memory::data_type kType =
    std::is_same_v<T, float> ? memory::data_type::f32 : memory::data_type::bf16;

template <typename T>
AlignedBuffer Filled(int64_t n, float value) {
  AlignedBuffer buffer(static_cast<size_t>(n) * sizeof(T));
  auto* const data = reinterpret_cast<T*>(buffer.data());
  T filling;
  if constexpr (std::is_same_v<T, float>) {
    filling = value;
  } else {
    Bf16FromFloat(&value, &filling, 1);
  }
  std::fill_n(data, n, filling);
  return buffer;
}

// C [m][n] = op(A) B in one primitive.
class OneDnn {
 public:
  OneDnn(int threads, int64_t m, int64_t n, int64_t k, memory::data_type a_b, memory::data_type c,
         bool weight_gradient)
      : threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Tag = memory::format_tag;
    omp_set_num_threads(threads);
    const memory::desc a_desc({m, k}, a_b, weight_gradient ? Tag::ba : Tag::ab);
    const memory::desc b_desc({k, n}, a_b, weight_gradient ? Tag::ab : Tag::any);
    const memory::desc c_desc({m, n}, c, Tag::ab);
    const dnnl::matmul::primitive_desc described = DescribeMatMul(engine_, a_desc, b_desc, c_desc);
    name_ = described.impl_info_str();
    matmul_ = dnnl::matmul(described);
    const auto add = [&](int argument, const memory::desc& desc) {
      memory filled(desc, engine_);
      std::fill_n(static_cast<uint16_t*>(filled.get_data_handle()), desc.get_size() / 2, 0x3c00);
      arguments_.emplace(argument, filled);
    };
    add(DNNL_ARG_SRC, described.src_desc());
    add(DNNL_ARG_WEIGHTS, described.weights_desc());
    add(DNNL_ARG_DST, described.dst_desc());
    omp_set_num_threads(1);
  }

  void Run() {
    omp_set_num_threads(threads_);
    matmul_.execute(stream_, arguments_);
    omp_set_num_threads(1);
  }

  const std::string& name() const { return name_; }

 private:
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::string name_;
  dnnl::matmul matmul_;
  std::unordered_map<int, memory> arguments_;
};

// One thread is timed by its CPU time, which depends less on other load.
template <typename Run>
double Seconds(int threads, const Run& run) {
  const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const auto now = [clock] {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  run();
  return now() - start;
}

template <typename T, Product kProduct>
void BM_Linear(benchmark::State& state) {
  const int64_t rows = state.range(0), in = state.range(1), out = state.range(2);
  const auto threads = static_cast<int>(state.range(3));
  const WeightOrder order = out > 10000 ? WeightOrder::kOutIn : WeightOrder::kInOut;
  constexpr bool kForward = kProduct == Product::kForward;
  constexpr bool kWeights = kProduct == Product::kWeightGradient;
  ThreadPool pool(threads);
  auto x = Filled<T>(rows * in, 0.5f), y = Filled<T>(rows * out, 0.25f);
  auto w = Filled<float>(in * out, 0.125f);
  auto* const x_at = reinterpret_cast<T*>(x.data());
  auto* const y_at = reinterpret_cast<T*>(y.data());
  LinearWeights<T> weights(in, out, order);
  if (!kWeights) weights.Bind(pool, w.floats().data());
  const bool in_out = order == WeightOrder::kInOut;
  OneDnn onednn(threads,
                !kWeights ? rows
                : in_out  ? in
                          : out,
                kForward    ? out
                : !kWeights ? in
                : in_out    ? out
                            : in,
                kForward   ? in
                : kWeights ? rows
                           : out,
                kType<T>, kWeights ? memory::data_type::f32 : kType<T>, kWeights);
  const auto run_ours = [&] {
    if constexpr (kForward) {
      LinearForward<T, T>(pool, weights, {rows, x_at, nullptr, y_at, out});
    } else if constexpr (kWeights) {
      LinearWeightGradient<T>(pool,
                              {in, out, order, rows, x_at, y_at, out, false, w.floats().data()});
    } else {
      LinearInputGradient(pool, weights, {rows, y_at, out, false, x_at});
    }
  };
  run_ours();  // the first run creates primitives and touches memory
  onednn.Run();
  double ours = 1e9, theirs = 1e9;
  for (auto _ : state) {
    theirs = std::min(theirs, Seconds(threads, [&] { onednn.Run(); }));
    ours = std::min(ours, Seconds(threads, run_ours));
  }
  const double gflop = 2e-9 * static_cast<double>(rows * in * out);
  state.counters["GFLOP/s"] = gflop / ours;
  state.counters["oneDNN"] = gflop / theirs;
  state.counters["ratio"] = theirs / ours;
  state.SetLabel(onednn.name());
}

void Shapes(benchmark::internal::Benchmark* b) {
  constexpr int64_t kShapes[][3] = {{2048, 384, 1152}, {2048, 384, 384}, {2048, 384, 1536},
                                    {2048, 1536, 384}, {2048, 384, 256}, {512, 768, 2304},
                                    {512, 768, 768},   {512, 768, 3072}, {512, 3072, 768},
                                    {512, 768, 50257}, {167, 384, 50257}};
  b->ArgNames({"rows", "in", "out", "threads"});
  for (const int64_t threads : {1, 2}) {
    for (const auto& [rows, in, out] : kShapes) b->Args({rows, in, out, threads});
  }
  b->UseRealTime();
}
BENCHMARK(BM_Linear<float, Product::kForward>)->Apply(Shapes);
BENCHMARK(BM_Linear<float, Product::kInputGradient>)->Apply(Shapes);
BENCHMARK(BM_Linear<float, Product::kWeightGradient>)->Apply(Shapes);
BENCHMARK(BM_Linear<Bf16, Product::kForward>)->Apply(Shapes);
BENCHMARK(BM_Linear<Bf16, Product::kInputGradient>)->Apply(Shapes);
BENCHMARK(BM_Linear<Bf16, Product::kWeightGradient>)->Apply(Shapes);

// Binds new weights: the matrices of GPT-2's smallest model, 124M. W is the type of the bound
// weights.
template <typename W>
void BM_Bind(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  struct Layer {
    LinearWeights<Bf16> weights;
    AlignedBuffer w;
  };
  std::vector<Layer> layers;
  int64_t elements = 0;
  const auto add = [&](int64_t in, int64_t out, WeightOrder order) {
    layers.push_back({LinearWeights<Bf16>(in, out, order), Filled<W>(in * out, 0.5f)});
    elements += in * out;
  };
  for (int layer = 0; layer < 12; ++layer) {
    add(768, 2304, WeightOrder::kInOut);
    add(768, 768, WeightOrder::kInOut);
    add(768, 3072, WeightOrder::kInOut);
    add(3072, 768, WeightOrder::kInOut);
  }
  add(768, 50257, WeightOrder::kOutIn);
  for (auto _ : state) {
    for (Layer& layer : layers) {
      layer.weights.Bind(pool, reinterpret_cast<const W*>(layer.w.data()));
    }
  }
  // Each element is read once and written twice.
  state.SetBytesProcessed(state.iterations() * elements *
                          static_cast<int64_t>(sizeof(W) + 2 * sizeof(Bf16)));
}
BENCHMARK(BM_Bind<float>)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(BM_Bind<Bf16>)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace tug::kernels
