// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_TILE_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_TILE_H_

// Tiles in shared memory and the products of attention on tensor cores. For .cu files.
//
// The left factor of a product is rows of a tile, or weights in registers; the right factor is a
// tile. A warp has 16 kM rows of the left factor, so each fragment it loads of the right factor
// serves kM products: with kM = 1, loads from shared memory (128 bytes per cycle) would take as
// long as the products.
//
// Fragments of lane 4 g + t (kernels/cuda/device/tensor_core.h): FragmentC [m][n] of a warp's
// product has rows 16 m + g (x[0], x[1]) and 16 m + g + 8 (x[2], x[3]), columns 8 n + 2 t and 8 n +
// 2 t + 1. So a row is in the four lanes of equal g, and C of two adjacent n, rounded to bf16, is a
// FragmentA without any exchange: P and dS pass from one product to the next without shared memory.

#include "kernels/cuda/attention/attention_head_cuda.h"
#include "kernels/cuda/device/bf16_cuda.h"
#include "kernels/cuda/device/tensor_core.h"

namespace tug::kernels::cuda {

inline constexpr int kMmaWarps = 4;
inline constexpr int kMmaThreads = kMmaWarps * kWarp;
// Rows of the tiles that are iterated over.
inline constexpr int kMmaTile = 64;

__device__ __forceinline__ int LaneRow() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ __forceinline__ int LaneColumn() { return 2 * (static_cast<int>(threadIdx.x) % 4); }

// The lane's number, which the compiler treats as new each time. Otherwise it would keep the
// address of every position of a tile that a lane reads in registers, across loops, and products
// need those registers.
__device__ __forceinline__ int FreshLane() {
  int lane = static_cast<int>(threadIdx.x) % kWarp;
#if !TUG_CUDA_EMULATED
  asm volatile("" : "+r"(lane));
#endif
  return lane;
}

// exp2 with a relative error of 2^-22; 0 for results below the normal numbers.
__device__ __forceinline__ float Exp2Approximate(float x) {
#if TUG_CUDA_EMULATED
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// Position of 16 bytes, elements 8 chunk to 8 chunk + 7 of a row, in a tile of kDim columns.
// ldmatrix reads the same chunk of 8 adjacent rows at once. A row has 64, 128 or 256 bytes, and a
// pass over the banks 128: chunks are permuted within 128 bytes, differently per row, so that those
// 8 are in different banks, and so are the 8 of one row, which adjacent threads write. Rows 8 apart
// have the same permutation: ChunkAt(8 i + row, chunk) = 8 i kDim + ChunkAt(row, chunk).
template <int kDim>
__device__ __forceinline__ int ChunkAt(int row, int chunk) {
  constexpr int kChunks = kDim / 8;
  constexpr int kRowsOfPass = kChunks < 8 ? 8 / kChunks : 1;
  constexpr int kExchanged = kChunks < 8 ? kChunks : 8;
  return row * kDim + (chunk ^ (row / kRowsOfPass % kExchanged)) * 8;
}

// Copies rows of one head into tiles, by all threads of the block: each copies one chunk of a row,
// and of the rows kStep, 2 kStep, ... after it. A head of fewer than kDim columns is padded with
// zeros, which change no product.
template <int kDim, int kThreads = kMmaThreads>
class RowCopies {
 public:
  // first: row 0 of the head. columns: a multiple of 8.
  __device__ __forceinline__ RowCopies(const Bf16* first, int64_t stride, int columns)
      : mine_(first + ThreadRow() * stride + ThreadChunk() * 8),
        stride_(stride),
        columns_(columns) {}

  // Starts to copy rows [row, row + kRows) to a tile; zeros from row `end` on.
  template <int kRows>
  __device__ __forceinline__ void Begin(int row, int end, Bf16* tile) const {
    static_assert(kRows % kStep == 0 && kStep % 8 == 0);
    Bf16* const to = tile + ChunkAt<kDim>(ThreadRow(), ThreadChunk());
    const Bf16* from = mine_ + row * stride_;
    const int left = ThreadChunk() * 8 < columns_ ? end - row - ThreadRow() : 0;
    // Unrolled, it would keep an address per row in registers that products need.
#pragma unroll 1
    for (int i = 0; i < kRows; i += kStep) {
      CopyAsync16(to + i * kDim, from, i < left ? 16 : 0);
      from += kStep * stride_;
    }
  }

 private:
  static constexpr int kChunks = kDim / 8;
  static constexpr int kStep = kThreads / kChunks;
  static __device__ __forceinline__ int ThreadRow() {
    return static_cast<int>(threadIdx.x) / kChunks;
  }
  static __device__ __forceinline__ int ThreadChunk() {
    return static_cast<int>(threadIdx.x) % kChunks;
  }

  const Bf16* mine_;
  int64_t stride_;
  int columns_;
};

// Waits until everything that the block's threads copy has arrived, and none of them still reads
// what the next copies overwrite.
__device__ __forceinline__ void WaitForTiles() {
  WaitForCopies<0>();
  __syncthreads();
}

// 16 kM rows of a tile as the left factor; kHeld: kept in registers.
template <int kDim, int kM, bool kHeld>
class LeftRows {
 public:
  __device__ __forceinline__ LeftRows(const Bf16* tile, int first_row)
      : tile_(tile), first_row_(first_row) {
    if constexpr (kHeld) {
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int step = 0; step < kDim / 16; ++step) held_[m][step] = Load(m, step, FreshLane());
      }
    }
  }
  // Rows 16 m to 16 m + 15, columns 16 step to 16 step + 15.
  __device__ __forceinline__ FragmentA At(int m, int step, int lane) const {
    if constexpr (kHeld) return held_[m][step];
    return Load(m, step, lane);
  }

 private:
  __device__ __forceinline__ FragmentA Load(int m, int step, int lane) const {
    FragmentA a;
    LoadMatrices<4, false>(
        tile_ + (first_row_ + 16 * m) * kDim + ChunkAt<kDim>(lane % 16, 2 * step + lane / 16), a.x);
    return a;
  }

  const Bf16* tile_;
  int first_row_;
  FragmentA held_[kHeld ? kM : 1][kHeld ? kDim / 16 : 1];
};

// product = left right^T; right is 8 kN rows of a tile from first_row on, a multiple of 8.
template <int kDim, int kM, int kN, bool kHeld>
__device__ __forceinline__ void MultiplyRows(const LeftRows<kDim, kM, kHeld>& left,
                                             const Bf16* right, int first_row,
                                             FragmentC (&product)[kM][kN]) {
  const int lane = FreshLane();
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) product[m][n] = {};
  }
#pragma unroll(kHeld ? kDim / 16 : kDim == 128 ? 1 : 2)
  for (int step = 0; step < kDim / 16; ++step) {
    FragmentA a[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m) a[m] = left.At(m, step, lane);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      unsigned b[4];
      LoadMatrices<4, false>(right + (first_row + 8 * n + lane / 16 * 8) * kDim +
                                 ChunkAt<kDim>(lane % 8, 2 * step + lane / 8 % 2),
                             b);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        MultiplyAdd(a[m], {{b[0], b[1]}}, product[m][n]);
        MultiplyAdd(a[m], {{b[2], b[3]}}, product[m][n + 1]);
      }
    }
  }
}

// sums += weights right; weights are rounded to bf16, right is 8 kN rows of a tile.
template <int kDim, int kM, int kN>
__device__ __forceinline__ void AddProduct(const FragmentC (&weights)[kM][kN], const Bf16* right,
                                           int first_row, FragmentC (&sums)[kM][kDim / 8]) {
  const int lane = FreshLane();
#pragma unroll
  for (int n = 0; n < kN; n += 2) {
    FragmentA a[kM];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      const float* const left = weights[m][n].x;
      const float* const next = weights[m][n + 1].x;
      a[m] = {{PackBf16(left[0], left[1]), PackBf16(left[2], left[3]), PackBf16(next[0], next[1]),
               PackBf16(next[2], next[3])}};
    }
#pragma unroll
    for (int c = 0; c < kDim / 8; c += 2) {
      unsigned b[4];
      LoadMatrices<4, true>(
          right + (first_row + 8 * n) * kDim + ChunkAt<kDim>(lane % 16, c + lane / 16), b);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        MultiplyAdd(a[m], {{b[0], b[1]}}, sums[m][c]);
        MultiplyAdd(a[m], {{b[2], b[3]}}, sums[m][c + 1]);
      }
    }
  }
}

// Destination of a warp's rows, and the number of rows and columns to write.
struct RowsOut {
  Bf16* to;
  int64_t stride;
  int rows;
  int columns;
};

// Rounds a warp's sums to bf16 and writes them, row i times its factor; an exact zero if the factor
// is 0. Uses rows first_row to first_row + 16 kM - 1 of a tile as a buffer, so that each thread
// writes 16 bytes at once; no other warp may use these rows, and no lane of this warp may still
// read them.
//   factor [m][h]  of row 16 m + 8 h + LaneRow()
template <int kDim, int kM>
__device__ __forceinline__ void StoreRows(const FragmentC (&sums)[kM][kDim / 8],
                                          const float (&factor)[kM][2], Bf16* tile, int first_row,
                                          const RowsOut& out) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float by = factor[m][h];
#pragma unroll
      for (int c = 0; c < kDim / 8; ++c) {
        const float* const x = sums[m][c].x + 2 * h;
        *reinterpret_cast<unsigned*>(tile + (first_row + 16 * m + 8 * h) * kDim +
                                     ChunkAt<kDim>(LaneRow(), c) + LaneColumn()) =
            by == 0 ? 0 : PackBf16(x[0] * by, x[1] * by);
      }
    }
  }
  __syncwarp();
  constexpr int kChunks = kDim / 8;
#pragma unroll
  for (int i = 0; i < 16 * kM * kChunks / kWarp; ++i) {
    const int at = i * kWarp + static_cast<int>(threadIdx.x) % kWarp;
    const int row = at / kChunks, chunk = at % kChunks;
    if (row < out.rows && chunk * 8 < out.columns) {
      *reinterpret_cast<uint4*>(out.to + row * out.stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(tile + ChunkAt<kDim>(first_row + row, chunk));
    }
  }
}

// Weights of a warp in one tile of 64 keys that dropout keeps: bit 4 n + i of of[m] is for x[i] of
// FragmentC [m][n]. Rows are queries; the four keys of a Philox counter are 16 apart, which is two
// n, so a lane uses all that it draws.
template <int kM>
struct KeptWeights {
  unsigned of[kM];

  __device__ __forceinline__ void Draw(const HeadOnDevice& head, int first_query, int first_key) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      of[m] = 0;
#pragma unroll 1
      for (int i = 0; i < 8; ++i) {
        const int h = i / 4, half = i / 2 % 2, odd = i % 2;
        const HeadOnDevice::FourWords words =
            head.DrawWords(first_query + 16 * m + 8 * h + LaneRow(), first_key / 64,
                           8 * half + LaneColumn() + odd);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const unsigned kept = words.of[w] >= head.call.dropout.threshold ? 1 : 0;
          of[m] |= kept << (4 * (2 * w + half) + 2 * h + odd);
        }
      }
    }
  }
  // first_row: first key of the weights within the tile, a multiple of 8.
  __device__ __forceinline__ bool Keeps(int first_row, int m, int n, int i) const {
    return (of[m] >> (first_row / 2) >> (4 * n + i) & 1) != 0;
  }
  template <int kN>
  __device__ __forceinline__ void Drop(int first_row, FragmentC (&weights)[kM][kN]) const {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int i = 0; i < 4 * kN; ++i) {
        if (!Keeps(first_row, m, i / 4, i % 4)) weights[m][i / 4].x[i % 4] = 0;
      }
    }
  }
};

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_MMA_TILE_H_
