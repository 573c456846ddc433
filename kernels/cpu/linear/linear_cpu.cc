// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "kernels/cpu/linear/linear_tile_product.h"
#include "kernels/cpu/linear/linear_tiles.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/cpu/linear/pack_bf16.h"
#include "kernels/cpu/linear/store_tile.h"
#include "kernels/linear.h"
#include "kernels/simd/thread_scratch.h"

// GFLOP/s of ours / oneDNN 2.6.3 alone: one primitive over the whole matrices, weights packed as it
// prefers. linear_benchmark, one thread of an AMD EPYC (Zen 4, avx512_bf16), CPU time on a loaded
// machine; rows, in x out:
//                     float: y        dx        dW     bf16: y        dx        dW
//   2048 384x1152       97/101    97/107   107/102     189/213   210/218   174/189
//   2048 384x384       102/106    95/108   107/103     202/218   189/218   179/198
//   2048 384x1536      100/107   102/108   105/101     198/217   208/213   184/195
//   2048 1536x384      108/108    92/106   104/100     212/216   193/210   161/181
//   2048 384x256       102/110    89/103    106/98     199/225   204/217   176/198
//    512 768x2304      103/108    98/110   108/105     207/213   216/216   185/198
//    512 768x768       107/109    95/109   108/103     209/228   209/218   192/204
//    512 768x3072       90/107    95/106     95/98     210/214   214/218   192/200
//    512 3072x768      104/108    99/106    95/103     211/215   213/215   180/199
//    512 768x50257       89/98    99/102    107/97     191/205   212/217   190/174
// The last column was measured before operands were packed once for all tiles. Before and after,
// alternating, best of 3, on a heavily loaded machine: from
//                           145, 163, 163, 159, 169, 176, 190, 184, 175, 181 to
//                           180, 173, 170, 171, 171, 185, 178, 189, 200, 200,
// layers 1.06 times as fast in the geometric mean; 167 384x50257 from 186 to 182.
// Tiles: share of oneDNN's rate that bf16 reaches, geometric mean, with at least
//   16 tiles of up to 256 x 256:  96% (y, dx);   of up to 256 x 512: 100% (dW)
//   32 tiles of up to 128 x 256:  95%            of up to 256 x 512:  95%
//   64 tiles of up to 128 x 256:  93%            of up to 128 x 256:  89%
// 32 was chosen so that the layers of a small model keep many threads busy. The loss is small: each
// tile costs a copy of its rows of x and dy (dW), or a pass over its sums in cache (y, dx).

namespace tug::kernels {
namespace {

constexpr TileLimit kForwardTile = {128, 256};  // for forward products and input gradients
constexpr TileLimit kWeightGradientTile = {256, 512};
constexpr TileLimit kPackedGradientTile = {256, 1024, /*wide=*/true};  // with bf16 instructions

void Allocate(AlignedBuffer& buffer, size_t size_bytes) {
  if (buffer.size_bytes() != size_bytes) buffer = AlignedBuffer(size_bytes);
}

// Rounds W to bf16 and widens it to float again.
template <typename T>
void Widen(ThreadPool& pool, int64_t n, const T* w, float* widened) {
  constexpr int64_t kPerTask = 1 << 14;
  pool.ParallelFor(CeilDiv(n, kPerTask), [&](int64_t task) {
    const int64_t at = task * kPerTask;
    const int64_t count = std::min(kPerTask, n - at);
    if constexpr (std::is_same_v<T, float>) {
      Bf16 rounded[kPerTask];
      Bf16FromFloat(w + at, rounded, count);
      FloatFromBf16(rounded, widened + at, count);
    } else {
      FloatFromBf16(w + at, widened + at, count);
    }
  });
}

// Packs a matrix B [k][n], or with kYes its transpose, in tasks.
template <typename T>
struct Packing {
  Packing(Transpose tb, int64_t k, int64_t n, const T* b, AlignedBuffer& packed)
      : tb(tb), k(k), n(n), b(b), packed(packed), tasks(PackParts(tb, k, n)) {
    Allocate(packed, PackedBytes(k, n));
  }

  void Run(int64_t task) const {
    PackPart(task, tb, k, n, b, reinterpret_cast<Bf16*>(packed.data()));
  }

  Transpose tb;
  int64_t k;
  int64_t n;
  const T* b;
  AlignedBuffer& packed;
  int64_t tasks;
};

// c = a W + bias, or with kYes c = a W^T + bias; with `accumulate` c += the right-hand side.
template <typename T, typename C>
struct Product {
  const LinearWeights<T>& w;
  Transpose transpose;
  int64_t rows;
  const T* a;
  const float* bias;
  bool accumulate;
  C* c;
};

// Calls after(tile) on the thread that has just written the tile of c.
template <typename T, typename C, typename After>
void Multiply(ThreadPool& pool, const Product<T, C>& p, const After& after) {
  const int64_t n = p.transpose == Transpose::kNo ? p.w.out() : p.w.in();
  const Tiling tiling(kForwardTile, p.rows, n);
  if (tiling.tiles() == 0) return;
  const LinearTileProduct<T> product(p.w, p.transpose, tiling);
  tiling.ForEach(pool, [&](const Tile& tile) {
    thread_local ThreadScratch scratch;
    float* const sums = scratch.Floats(tile.rows * tile.columns);
    product.Run(tile, p.a, sums);
    StoreTile(tile.rows, tile.columns, sums, p.bias == nullptr ? nullptr : p.bias + tile.column,
              p.accumulate, p.c + tile.row * n + tile.column, n);
    after(tile);
  });
}

void Nothing(const Tile& /*tile*/) {}

}  // namespace

template <typename T>
uint64_t LinearWeights<T>::SizeBytes(int64_t in, int64_t out) {
  if constexpr (std::is_same_v<T, float>) return 0;
  if (!HasBf16Products()) return static_cast<uint64_t>(in * out) * sizeof(float);
  return PackedBytes(in, out) + PackedBytes(out, in);
}

template <typename T>
template <typename W>
void LinearWeights<T>::BindBf16(ThreadPool& pool, const W* w) {
  if (!HasBf16Products()) {
    Allocate(widened_, SizeBytes(in_, out_));
    return Widen(pool, in_ * out_, w, widened_.floats().data());
  }
  const bool in_out = order_ == WeightOrder::kInOut;
  const Packing<W> forward(in_out ? Transpose::kNo : Transpose::kYes, in_, out_, w, forward_);
  const Packing<W> backward(in_out ? Transpose::kYes : Transpose::kNo, out_, in_, w, backward_);
  pool.ParallelFor(forward.tasks + backward.tasks, [&](int64_t task) {
    if (task < forward.tasks) {
      forward.Run(task);
    } else {
      backward.Run(task - forward.tasks);
    }
  });
}

template <typename T>
void LinearWeights<T>::Bind(ThreadPool& pool, const float* w) {
  if constexpr (std::is_same_v<T, float>) {
    view_ = w;
  } else {
    BindBf16(pool, w);
  }
}

template <typename T>
void LinearWeights<T>::Bind(ThreadPool& pool, const Bf16* w) requires std::is_same_v<T, Bf16> {
  BindBf16(pool, w);
}

template <typename T>
void LinearWeights<T>::Release() {
  view_ = nullptr;
  forward_ = {};
  backward_ = {};
  widened_ = {};
}

template <typename T, typename Y>
void LinearForward(ThreadPool& pool, const LinearWeights<T>& w, const LinearForwardArgs<T, Y>& a) {
  TUG_CHECK_EQ(a.y_stride, w.out());
  Multiply<T, Y>(pool, {w, Transpose::kNo, a.rows, a.x, a.bias, /*accumulate=*/false, a.y},
                 Nothing);
}

template <typename T>
void LinearActivationForward(ThreadPool& pool, const LinearWeights<T>& w,
                             const LinearActivationForwardArgs<T>& a) {
  Multiply<T, T>(pool, {w, Transpose::kNo, a.rows, a.x, a.bias, /*accumulate=*/false, a.pre},
                 [&](const Tile& tile) {
                   const int64_t at = tile.row * w.out() + tile.column;
                   BiasActivationTile(a.activation, tile.rows, tile.columns, w.out(),
                                      /*bias=*/nullptr, a.pre + at, a.y + at);
                 });
}

template <typename T>
void LinearInputGradient(ThreadPool& pool, const LinearWeights<T>& w,
                         const LinearInputGradientArgs<T>& a) {
  TUG_CHECK_EQ(a.dy_stride, w.out());
  Multiply<T, T>(pool, {w, Transpose::kYes, a.rows, a.dy, nullptr, a.accumulate, a.dx}, Nothing);
}

template <typename T>
void LinearWeightGradient(ThreadPool& pool, const LinearWeightGradientArgs<T>& args) {
  TUG_CHECK_EQ(args.dy_stride, args.out);
  // For kOutIn the gradient is dy^T x.
  const bool in_out = args.order == WeightOrder::kInOut;
  const int64_t m = in_out ? args.in : args.out;
  const int64_t n = in_out ? args.out : args.in;
  const bool packed = std::is_same_v<T, Bf16> && HasBf16Products();
  const Tiling tiling(packed ? kPackedGradientTile : kWeightGradientTile, m, n);
  if (tiling.tiles() == 0) return;
  const T* const a = in_out ? args.x : args.dy;
  const T* const b = in_out ? args.dy : args.x;
  const int64_t rows_at_once = TransposedTileProduct<T>::RowsAtOnce(args.rows);
  for (int64_t at = 0; at == 0 || at < args.rows; at += rows_at_once) {
    const TransposedTileProduct<T> product(pool, tiling,
                                           {.m = m,
                                            .n = n,
                                            .k = std::min(rows_at_once, args.rows - at),
                                            .a = a + at * m,
                                            .b = b + at * n,
                                            .accumulate = args.accumulate || at > 0});
    tiling.ForEach(pool, [&](const Tile& tile) { product.Run(tile, args.dw); });
  }
}

template class LinearWeights<float>;
template class LinearWeights<Bf16>;
template void LinearForward(ThreadPool&, const LinearWeights<float>&,
                            const LinearForwardArgs<float>&);
template void LinearForward(ThreadPool&, const LinearWeights<Bf16>&,
                            const LinearForwardArgs<Bf16>&);
template void LinearForward(ThreadPool&, const LinearWeights<Bf16>&,
                            const LinearForwardArgs<Bf16, float>&);
#define TUG_INSTANTIATE(T)                                                      \
  template void LinearActivationForward(ThreadPool&, const LinearWeights<T>&,   \
                                        const LinearActivationForwardArgs<T>&); \
  template void LinearInputGradient(ThreadPool&, const LinearWeights<T>&,       \
                                    const LinearInputGradientArgs<T>&);         \
  template void LinearWeightGradient(ThreadPool&, const LinearWeightGradientArgs<T>&)
TUG_INSTANTIATE(float);
TUG_INSTANTIATE(Bf16);
#undef TUG_INSTANTIATE

}  // namespace tug::kernels
