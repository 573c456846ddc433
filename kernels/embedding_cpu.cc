#include "kernels/embedding.h"

#include <algorithm>

// One row of `width` additions a token: next to nothing beside the matrix products.

#ifndef TUG_KERNELS_EMBEDDING_CPU_ONCE_
#define TUG_KERNELS_EMBEDDING_CPU_ONCE_
namespace tug::kernels {

// The two element types of EmbeddingForward as one.
template <typename W, typename T>
struct EmbeddingTypes {
  using Weight = W;
  using Element = T;
};

}  // namespace tug::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/bf16-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/simd_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// Rows [begin, end) of out.
template <typename Types>
void ForwardRows(int64_t begin, int64_t end, int64_t seq, int64_t width, const int32_t* tokens,
                 const typename Types::Weight* wte, const typename Types::Weight* wpe,
                 typename Types::Element* out) {
  for (int64_t row = begin; row < end; ++row) {
    const auto* token = wte + tokens[row] * width;
    const auto* position = wpe + row % seq * width;
    auto* y = out + row * width;
    for (int64_t i = 0; i < width; i += FloatLanes()) {
      const int64_t left = width - i;
      StoreUpTo(hn::Add(LoadUpTo(token + i, left), LoadUpTo(position + i, left)), y + i, left);
    }
  }
}

// The `count` columns that dout, dwte and dwpe begin at, of all rows.
template <typename T>
void BackwardColumns(int64_t rows, int64_t seq, int64_t width, int64_t count, const int32_t* tokens,
                     const T* dout, float* dwte, float* dwpe) {
  for (int64_t row = 0; row < rows; ++row, dout += width) {
    float* token = dwte + tokens[row] * width;
    float* position = dwpe + row % seq * width;
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
    64;  // of the backward pass, so that each row is summed in token order

}  // namespace

template <typename W, typename T>
void EmbeddingForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                      const int32_t* tokens, const W* wte, const W* wpe, T* out) {
  using Types = EmbeddingTypes<W, T>;
  const int64_t rows = samples * seq;
  pool.ParallelFor((rows + kTokensPerTask - 1) / kTokensPerTask, [&](int64_t task) {
    const int64_t begin = task * kTokensPerTask;
    TUG_DISPATCH(ForwardRows, Types)
    (begin, std::min(rows, begin + kTokensPerTask), seq, width, tokens, wte, wpe, out);
  });
}

template <typename T>
void EmbeddingBackward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                       const int32_t* tokens, const T* dout, float* dwte, float* dwpe) {
  pool.ParallelFor((width + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task) {
    const int64_t column = task * kColumnsPerTask;
    TUG_DISPATCH(BackwardColumns, T)
    (samples * seq, seq, width, std::min(kColumnsPerTask, width - column), tokens, dout + column,
     dwte + column, dwpe + column);
  });
}

template void EmbeddingForward(ThreadPool&, int64_t, int64_t, int64_t, const int32_t*, const float*,
                               const float*, float*);
template void EmbeddingForward(ThreadPool&, int64_t, int64_t, int64_t, const int32_t*, const float*,
                               const float*, Bf16*);
template void EmbeddingForward(ThreadPool&, int64_t, int64_t, int64_t, const int32_t*, const Bf16*,
                               const Bf16*, Bf16*);
template void EmbeddingBackward(ThreadPool&, int64_t, int64_t, int64_t, const int32_t*,
                                const float*, float*, float*);
template void EmbeddingBackward(ThreadPool&, int64_t, int64_t, int64_t, const int32_t*, const Bf16*,
                                float*, float*);

}  // namespace tug::kernels
#endif  // HWY_ONCE
