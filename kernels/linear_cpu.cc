#include "kernels/linear.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/linear_tiles.h"
#include "kernels/matmul.h"

namespace tug::kernels {

template <typename T>
LinearWeights<T>::LinearWeights(int64_t in, int64_t out, WeightOrder order)
    : in_(in), out_(out), order_(order) {
  TUG_CHECK(in >= 0 && out >= 0);
}
template <typename T>
LinearWeights<T>::~LinearWeights() = default;
template <typename T>
LinearWeights<T>::LinearWeights(LinearWeights&&) noexcept = default;
template <typename T>
LinearWeights<T>& LinearWeights<T>::operator=(LinearWeights&&) noexcept = default;

// Float: tiles of the caller's matrix, multiplied where it lies.

template <>
uint64_t LinearWeights<float>::SizeBytes(int64_t /*in*/, int64_t /*out*/) {
  return 0;
}

template <>
void LinearWeights<float>::Bind(ThreadPool& /*pool*/, const float* w) {
  view_ = w;
}

template <>
struct LinearProducts<float> {
  using Weights = LinearWeights<float>;

  // The tile of y = x W + bias.
  static void Forward(const Weights& w, const Tile& tile, const float* x, const float* bias,
                      float* y) {
    float* const c = y + tile.row * w.out_ + tile.column;
    for (int64_t r = 0; bias != nullptr && r < tile.rows; ++r) {
      std::copy_n(bias + tile.column, tile.columns, c + r * w.out_);
    }
    const bool in_out = w.order_ == WeightOrder::kInOut;
    MatMulInTask(Transpose::kNo, in_out ? Transpose::kNo : Transpose::kYes, tile.rows, tile.columns,
                 w.in_, x + tile.row * w.in_, w.in_,
                 w.view_ + (in_out ? tile.column : tile.column * w.in_), in_out ? w.out_ : w.in_,
                 bias != nullptr ? 1.0f : 0.0f, c, w.out_);
  }

  // The tile of dx = dy W^T, or dx += dy W^T.
  static void InputGradient(const Weights& w, const Tile& tile, const float* dy, bool accumulate,
                            float* dx) {
    const bool in_out = w.order_ == WeightOrder::kInOut;
    MatMulInTask(Transpose::kNo, in_out ? Transpose::kYes : Transpose::kNo, tile.rows, tile.columns,
                 w.out_, dy + tile.row * w.out_, w.out_,
                 w.view_ + (in_out ? tile.column * w.out_ : tile.column), in_out ? w.out_ : w.in_,
                 accumulate ? 1.0f : 0.0f, dx + tile.row * w.in_ + tile.column, w.in_);
  }

  // The tile of c = a^T b, or c += a^T b.   a [k][m]; b [k][n]; c [m][n]
  static void WeightGradient(const Tile& tile, int64_t m, int64_t n, int64_t k, const float* a,
                             const float* b, bool accumulate, float* c) {
    MatMulInTask(Transpose::kYes, Transpose::kNo, tile.rows, tile.columns, k, a + tile.row, m,
                 b + tile.column, n, accumulate ? 1.0f : 0.0f, c + tile.row * n + tile.column, n);
  }
};

template <typename T, typename Y>
void LinearForward(ThreadPool& pool, const LinearWeights<T>& w, int64_t rows, const T* x,
                   const float* bias, Y* y) {
  Tiling(rows, w.out()).ForEach(pool, [&](const Tile& tile) {
    LinearProducts<T>::Forward(w, tile, x, bias, y);
  });
}

template <typename T>
void LinearInputGradient(ThreadPool& pool, const LinearWeights<T>& w, int64_t rows, const T* dy,
                         bool accumulate, T* dx) {
  Tiling(rows, w.in()).ForEach(pool, [&](const Tile& tile) {
    LinearProducts<T>::InputGradient(w, tile, dy, accumulate, dx);
  });
}

template <typename T>
void LinearWeightGradient(ThreadPool& pool, WeightOrder order, int64_t in, int64_t out,
                          int64_t rows, const T* x, const T* dy, bool accumulate, float* dw) {
  // In the order kOutIn the gradient is dy^T x.
  const bool in_out = order == WeightOrder::kInOut;
  const int64_t m = in_out ? in : out;
  const int64_t n = in_out ? out : in;
  Tiling(m, n).ForEach(pool, [&](const Tile& tile) {
    LinearProducts<T>::WeightGradient(tile, m, n, rows, in_out ? x : dy, in_out ? dy : x,
                                      accumulate, dw);
  });
}

template class LinearWeights<float>;
template void LinearForward(ThreadPool&, const LinearWeights<float>&, int64_t, const float*,
                            const float*, float*);
template void LinearInputGradient(ThreadPool&, const LinearWeights<float>&, int64_t, const float*,
                                  bool, float*);
template void LinearWeightGradient(ThreadPool&, WeightOrder, int64_t, int64_t, int64_t,
                                   const float*, const float*, bool, float*);

}  // namespace tug::kernels
