#include <algorithm>

#include "kernels/embedding.h"

// Plain loops: one row of `width` additions a token, next to nothing beside the matrix products.

namespace tug::kernels {
namespace {

constexpr int64_t kTokensPerTask = 64;
constexpr int64_t kColumnsPerTask =
    64;  // of the backward pass, so that each row is summed in token order

void AddTo(int64_t n, const float* __restrict x, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

}  // namespace

void EmbeddingForward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                      const int32_t* tokens, const float* wte, const float* wpe, float* out) {
  const int64_t rows = samples * seq;
  pool.ParallelFor((rows + kTokensPerTask - 1) / kTokensPerTask, [&](int64_t task) {
    const int64_t end = std::min(rows, (task + 1) * kTokensPerTask);
    for (int64_t row = task * kTokensPerTask; row < end; ++row) {
      const float* token = wte + tokens[row] * width;
      const float* position = wpe + row % seq * width;
      float* __restrict y = out + row * width;
      for (int64_t i = 0; i < width; ++i) y[i] = token[i] + position[i];
    }
  });
}

void EmbeddingBackward(ThreadPool& pool, int64_t samples, int64_t seq, int64_t width,
                       const int32_t* tokens, const float* dout, float* dwte, float* dwpe) {
  const int64_t rows = samples * seq;
  pool.ParallelFor((width + kColumnsPerTask - 1) / kColumnsPerTask, [&](int64_t task) {
    const int64_t column = task * kColumnsPerTask;
    const int64_t count = std::min(kColumnsPerTask, width - column);
    for (int64_t row = 0; row < rows; ++row) {
      const float* gradient = dout + row * width + column;
      AddTo(count, gradient, dwte + tokens[row] * width + column);
      AddTo(count, gradient, dwpe + row % seq * width + column);
    }
  });
}

}  // namespace tug::kernels
