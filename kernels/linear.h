// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_LINEAR_H_
#define TUG_KERNELS_LINEAR_H_

#include <cstdint>
#include <type_traits>

#include "base/cpu/thread_pool.h"
#include "base/memory/lease.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"

namespace tug::kernels {

// The three products of a linear layer y[rows][out] = x[rows][in] W, through oneDNN. x, y and their
// gradients are of type T, float or Bf16; sums are FP32.
//
// Work is divided over rows and columns of the result into tiles that depend on the shape alone,
// never over the summed dimension, so the bits do not depend on pool.threads(). They may depend on
// the instruction set. On machines without bf16 instructions (avx512_bf16 or AMX), Bf16 operands
// are widened tile by tile and multiplied in FP32. Thread-safe for calls with different pools.

enum class WeightOrder {
  kInOut,  // W is stored [in][out], as in GPT-2's checkpoints
  kOutIn,  // W is stored [out][in], as an embedding [symbols][width] that serves as the head
};

template <typename T>
class LinearTileProduct;

// Weight matrix in the layout the products read. Float: a view of the caller's matrix. Bf16: its
// own copies, one packed for y = x W and one for dx = dy W^T, so that a product only streams them
// (without bf16 instructions: one copy, widened).
template <typename T>
class LinearWeights {
 public:
  // REQUIRES: in, out >= 0.
  LinearWeights(int64_t in, int64_t out, WeightOrder order) : in_(in), out_(out), order_(order) {}

  // Bytes of own memory, allocated by the first Bind: 0 for float; for Bf16 4 in out, each
  // dimension rounded up as packing requires.
  static uint64_t SizeBytes(int64_t in, int64_t out);

  // Sets new weights. Float: the matrix stays the caller's and must live until the next Bind. Bf16:
  // it is read only during the call; floats are rounded to nearest even. REQUIRES: no product is
  // reading these weights.
  void Bind(ThreadPool& pool, const float* w);
  void Bind(ThreadPool& pool, const Bf16* w) requires std::is_same_v<T, Bf16>;

  // Frees its own memory. REQUIRES: no product reads the weights before the next Bind.
  void Release();
  // Bytes of own memory now allocated.
  uint64_t copy_bytes() const {
    return forward_.size_bytes() + backward_.size_bytes() + widened_.size_bytes();
  }

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  WeightOrder order() const { return order_; }

 private:
  friend class LinearTileProduct<T>;  // linear_tile_product.h, for the .cc files

  template <typename W>
  void BindBf16(ThreadPool& pool, const W* w);

  int64_t in_;
  int64_t out_;
  WeightOrder order_;
  const float* view_ = nullptr;  // the caller's matrix; float only
  // Bf16 only.
  AlignedBuffer forward_;   // packed for y = x W
  AlignedBuffer backward_;  // packed for dx = dy W^T
  AlignedBuffer widened_;   // without bf16 instructions: as floats, in the order of W
};

template <typename T, typename Y = T, typename B = float>
struct LinearForwardArgs {
  int64_t rows;
  const T* x;        // [rows][in]
  const B* bias;     // [out], or nullptr: none
  Y* y;              // [rows][y_stride], `out` columns are written
  int64_t y_stride;  // at least out; on the CPU equal to out
};

// y = x W + bias.   Y = T, or float for T = Bf16 (logits).
template <typename T, typename Y>
void LinearForward(ThreadPool& pool, const LinearWeights<T>& w,
                   const LinearForwardArgs<T, Y>& args);

template <typename T, typename B = float>
struct LinearActivationForwardArgs {
  int64_t rows;
  const T* x;     // [rows][in]
  const B* bias;  // [out], or nullptr: none
  Activation activation;
  T* pre;  // [rows][out]
  T* y;    // [rows][out]
};

// pre = x W + bias;  y = activation(pre), while each tile of pre is in cache.
template <typename T>
void LinearActivationForward(ThreadPool& pool, const LinearWeights<T>& w,
                             const LinearActivationForwardArgs<T>& args);

template <typename T>
struct LinearInputGradientArgs {
  int64_t rows;
  const T* dy;        // [rows][dy_stride], `out` columns are read
  int64_t dy_stride;  // at least out; on the CPU equal to out
  bool accumulate;
  T* dx;  // [rows][in]
};

// dx = dy W^T, or with `accumulate` dx += dy W^T.
template <typename T>
void LinearInputGradient(ThreadPool& pool, const LinearWeights<T>& w,
                         const LinearInputGradientArgs<T>& args);

template <typename T, typename S = float>
struct LinearWeightGradientArgs {
  int64_t in;
  int64_t out;
  WeightOrder order;
  int64_t rows;
  const T* x;         // [rows][in]
  const T* dy;        // [rows][dy_stride], `out` columns are read
  int64_t dy_stride;  // at least out; on the CPU equal to out
  bool accumulate;
  S* dw;  // [in][out] or [out][in], FP32
};

// dw = x^T dy in the order of W, or with `accumulate` dw += x^T dy.
// Bf16 with bf16 instructions: x and dy are copied, up to about 1,056 rows at once, to memory that
// the calling thread keeps: 2 (in + out) bytes per row (rows rounded up to 32; the columns of dw to
// 64). If dw has few columns and many rows, as for the head, the calling thread keeps only 2 bytes
// per row for each column of dw, and each thread those of a tile of up to 256 rows of dw.
template <typename T>
void LinearWeightGradient(ThreadPool& pool, const LinearWeightGradientArgs<T>& args);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_LINEAR_H_
