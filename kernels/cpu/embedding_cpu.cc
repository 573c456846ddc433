// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include <algorithm>

// One row of `width` additions per token: negligible compared with the matrix products.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/simd/bf16-inl.h"
#include "kernels/simd/simd-inl.h"
#include "kernels/simd/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Rows [begin, end) of out. Args: EmbeddingForwardArgs.
template <typename Args>
void ForwardRows(int64_t begin, int64_t end, const Args& a) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t width = a.width;
    const auto* token = a.wte + a.tokens[row] * width;
    const auto* position = a.wpe + row % a.seq * width;
    auto* y = a.out + row * width;
    for (int64_t i = 0; i < width; i += FloatLanes()) {
      const int64_t left = width - i;
      StoreUpTo(hn::Add(LoadUpTo(token + i, left), LoadUpTo(position + i, left)), y + i, left);
    }
  }
}

// Columns [begin, end) of all rows.
template <typename T>
void BackwardColumns(int64_t begin, int64_t end, const EmbeddingBackwardArgs<T>& a) {
  const int64_t rows = a.samples * a.seq, count = end - begin;
  const T* dout = a.dout + begin;
  for (int64_t row = 0; row < rows; ++row, dout += a.width) {
    float* token = a.dwte + a.tokens[row] * a.width + begin;
    float* position = a.dwpe + row % a.seq * a.width + begin;
    for (int64_t i = 0; i < count; i += FloatLanes()) {
      const int64_t left = count - i;
      const auto gradient = LoadUpTo(dout + i, left);
      StoreUpTo(hn::Add(LoadUpTo(token + i, left), gradient), token + i, left);
      StoreUpTo(hn::Add(LoadUpTo(position + i, left), gradient), position + i, left);
    }
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {
namespace {

constexpr int64_t kTokensPerTask = 64;
constexpr int64_t kColumnsPerTask =
    64;  // of the backward pass: each row is then summed in token order

}  // namespace

template <typename W, typename T>
void EmbeddingForward(ThreadPool& pool, const EmbeddingForwardArgs<W, T>& a) {
  using Args = EmbeddingForwardArgs<W, T>;
  const int64_t rows = a.samples * a.seq;
  pool.ParallelFor((rows + kTokensPerTask - 1) / kTokensPerTask, [&](int64_t task) {
    const int64_t begin = task * kTokensPerTask;
    TUG_DISPATCH(ForwardRows, Args)(begin, std::min(rows, begin + kTokensPerTask), a);
  });
}

template <typename T>
void EmbeddingBackward(ThreadPool& pool, const EmbeddingBackwardArgs<T>& a) {
  pool.ParallelFor((a.width + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task) {
    const int64_t begin = task * kColumnsPerTask;
    TUG_DISPATCH(BackwardColumns, T)(begin, std::min(a.width, begin + kColumnsPerTask), a);
  });
}

template void EmbeddingForward(ThreadPool&, const EmbeddingForwardArgs<float, float>&);
template void EmbeddingForward(ThreadPool&, const EmbeddingForwardArgs<float, Bf16>&);
template void EmbeddingForward(ThreadPool&, const EmbeddingForwardArgs<Bf16, Bf16>&);
template void EmbeddingBackward(ThreadPool&, const EmbeddingBackwardArgs<float>&);
template void EmbeddingBackward(ThreadPool&, const EmbeddingBackwardArgs<Bf16>&);

}  // namespace tug::kernels
#endif  // HWY_ONCE
