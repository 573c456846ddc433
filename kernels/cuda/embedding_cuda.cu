// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/embedding_cuda.h"

#include "base/status_macros.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

// The backward pass finds the rows of dout of each token by sorting, so that no two threads ever
// add to the same place.
//   1. Keys (token, row) are sorted in tiles, each in the shared memory of a block (Batcher's
//      bitonic sort).
//   2. The rank of a key is its position in its tile plus the number of smaller keys in every other
//      tile: binary searches. Keys are all different, so the order is that of the rows.
//   3. The sorted keys are divided into windows of 32. A warp adds up the rows of a window in
//      order, for a slice of the columns; all have the same work, however frequent a token is. The
//      sum of a run of equal tokens inside the window goes to dwte. The sum of a run that crosses
//      an end of the window goes to scratch memory.
//   4. The pieces of a run over several windows are added to dwte, in order, by the warp of the
//      window in which the run begins.

namespace tug::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSortThreads = 1024;
constexpr int kTile = 2 * kSortThreads;
constexpr int kLanesPerKey = 8;
constexpr int kWindow = kWarp;
constexpr int kAtOnce = 8;  // rows that a lane loads before it uses the first

using Key = uint64_t;
constexpr Key kNoKey = ~Key{0};

__device__ __forceinline__ int32_t TokenOf(Key key) { return static_cast<int32_t>(key >> 32); }
__device__ __forceinline__ int32_t RowOf(Key key) { return static_cast<int32_t>(key); }

template <typename W, typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(int64_t rows, int64_t seq, int64_t width, const int32_t* __restrict__ tokens,
                  const W* __restrict__ wte, const W* __restrict__ wpe, T* __restrict__ out) {
  constexpr int kCount = kVector<W>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = GlobalThread() / kWarp; row < rows; row += GridThreads() / kWarp) {
    const W* const token = wte + tokens[row] * width;
    const W* const position = wpe + row % seq * width;
    for (int64_t i = lane * kCount; i < width; i += kWarp * kCount) {
      float a[kCount], b[kCount];
      LoadVector<kWhole>(token + i, width - i, a);
      LoadVector<kWhole>(position + i, width - i, b);
#pragma unroll
      for (int j = 0; j < kCount; ++j) a[j] += b[j];
      StoreVector<kWhole>(a, width - i, out + row * width + i);
    }
  }
}

struct TileShared {
  Key key[kTile];
};

// tiles [blocks][kTile]: sorted keys of rows [block kTile, (block + 1) kTile), padded with kNoKey.
__global__ void __launch_bounds__(kSortThreads)
    SortTilesKernel(int64_t rows, const int32_t* __restrict__ tokens, Key* __restrict__ tiles) {
  Key* const key = SharedMemory<TileShared>()->key;
  const int64_t begin = int64_t{blockIdx.x} * kTile;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kTile; i += kSortThreads) {
    const int64_t row = begin + i;
    key[i] =
        row < rows ? Key{static_cast<uint32_t>(tokens[row])} << 32 | static_cast<Key>(row) : kNoKey;
  }
  for (int size = 2; size <= kTile; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      const int i = 2 * thread - (thread & (apart - 1));
      const Key a = key[i];
      const Key b = key[i + apart];
      const bool upwards = (i & size) == 0;
      if ((a > b) == upwards) {
        key[i] = b;
        key[i + apart] = a;
      }
    }
  }
  __syncthreads();
  for (int i = thread; i < kTile; i += kSortThreads) tiles[begin + i] = key[i];
}

// Number of keys of a sorted tile that are smaller.
__device__ __forceinline__ int CountSmaller(const Key* tile, Key key) {
  int count = 0;
#pragma unroll
  for (int step = kTile / 2; step > 0; step /= 2) {
    if (tile[count + step - 1] < key) count += step;
  }
  return count + (tile[count] < key ? 1 : 0);
}

// Writes sorted [rows]. kLanesPerKey lanes divide the tiles among them for a key.
__global__ void __launch_bounds__(kThreads)
    MergeTilesKernel(int64_t tile_count, const Key* __restrict__ tiles, Key* __restrict__ sorted) {
  const int64_t at = GlobalThread() / kLanesPerKey;  // whole blocks: always within the tiles
  const int share = static_cast<int>(threadIdx.x) % kLanesPerKey;
  const Key key = tiles[at];
  int smaller = 0;
  for (int64_t tile = share; tile < tile_count; tile += kLanesPerKey) {
    smaller +=
        tile == at / kTile ? static_cast<int>(at % kTile) : CountSmaller(tiles + tile * kTile, key);
  }
  for (int apart = kLanesPerKey / 2; apart > 0; apart /= 2) {
    smaller += __shfl_xor_sync(kAllLanes, smaller, apart);
  }
  if (share == 0 && key != kNoKey) sorted[smaller] = key;
}

// Window and columns of a warp.
template <int kCount>
struct Part {
  int64_t window;
  int64_t column;  // first column of this lane's vector

  static __device__ __forceinline__ Part OfWarp(int64_t width) {
    const int64_t slices = SlicesOf(width);
    const int64_t number = GlobalThread() / kWarp;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return {number / slices, (number % slices * kWarp + lane) * kCount};
  }
  static __host__ __device__ __forceinline__ int64_t SlicesOf(int64_t width) {
    return (width + kWarp * kCount - 1) / (kWarp * kCount);
  }
};

// pieces [2][windows][width]: sum of the run that enters the window from the previous one; sum of
// the run that begins in the window and continues beyond it.
template <typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    SumWindowsKernel(int64_t rows, int64_t windows, int64_t width, const Key* __restrict__ sorted,
                     const T* __restrict__ dout, float* __restrict__ dwte,
                     float* __restrict__ pieces) {
  constexpr int kCount = kVector<T>;
  const auto part = Part<kCount>::OfWarp(width);
  if (part.window >= windows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t begin = part.window * kWindow;
  const int64_t left = width - part.column;
  const int count = static_cast<int>(min(rows - begin, int64_t{kWindow}));
  const Key key = lane < count ? sorted[begin + lane] : kNoKey;
  const Key before = begin > 0 ? sorted[begin - 1] : kNoKey;
  const Key behind = begin + count < rows ? sorted[begin + count] : kNoKey;
  int32_t token = __shfl_sync(kAllLanes, TokenOf(key), 0);
  bool came_in = TokenOf(before) == token;
  float sum[kCount] = {};
  if (!came_in) LoadVector<kWhole>(dwte + token * width + part.column, left, sum);
  for (int first = 0; first < count; first += kAtOnce) {
    float row[kAtOnce][kCount];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t of = __shfl_sync(kAllLanes, RowOf(key), first + i);
      LoadVector<kWhole>(dout + of * width + part.column, first + i < count ? left : 0, row[i]);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= count) break;
      const int32_t token_here = __shfl_sync(kAllLanes, TokenOf(key), first + i);
      if (token_here != token) {
        float* const to = came_in ? pieces + part.window * width : dwte + token * width;
        StoreVector<kWhole>(sum, left, to + part.column);
        token = token_here;
        came_in = false;
        LoadVector<kWhole>(dwte + token * width + part.column, left, sum);
      }
#pragma unroll
      for (int j = 0; j < kCount; ++j) sum[j] += row[i][j];
    }
  }
  float* to = dwte + token * width;
  if (came_in) {
    to = pieces + part.window * width;
  } else if (TokenOf(behind) == token) {
    to = pieces + (windows + part.window) * width;  // started with the old value of dwte
  }
  StoreVector<kWhole>(sum, left, to + part.column);
}

template <typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    JoinPiecesKernel(int64_t windows, int64_t width, const Key* __restrict__ sorted,
                     const float* __restrict__ pieces, float* __restrict__ dwte) {
  constexpr int kCount = kVector<T>;
  const auto part = Part<kCount>::OfWarp(width);
  if (part.window + 1 >= windows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t begin = part.window * kWindow;
  const int64_t left = width - part.column;
  const int32_t token = TokenOf(sorted[begin + kWindow - 1]);
  const bool goes_on = TokenOf(sorted[begin + kWindow]) == token;
  const bool came_in = begin > 0 && TokenOf(sorted[begin - 1]) == token;
  if (!goes_on || came_in) return;
  float sum[kCount];
  LoadVector<kWhole>(pieces + (windows + part.window) * width + part.column, left, sum);
  for (int64_t first = part.window + 1;; first += kWarp) {
    const int64_t mine = first + lane;
    const bool in_run = mine < windows && TokenOf(sorted[mine * kWindow]) == token;
    const int count = __popc(__ballot_sync(kAllLanes, in_run));
    for (int i = 0; i < count; i += kAtOnce) {
      float piece[kAtOnce][kCount];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        LoadVector<kWhole>(pieces + (first + i + j) * width + part.column, i + j < count ? left : 0,
                           piece[j]);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
        for (int k = 0; k < kCount; ++k) {
          if (i + j < count) sum[k] += piece[j][k];
        }
      }
    }
    if (count < kWarp) break;
  }
  StoreVector<kWhole>(sum, left, dwte + token * width + part.column);
}

template <typename T, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    PositionsKernel(int64_t samples, int64_t seq, int64_t width, const T* __restrict__ dout,
                    float* __restrict__ dwpe) {
  constexpr int kCount = kVector<T>;
  const int64_t vectors = (width + kCount - 1) / kCount;
  const int64_t number = GlobalThread();
  if (number >= seq * vectors) return;
  const int64_t at = number / vectors * width;
  const int64_t column = number % vectors * kCount;
  const int64_t left = width - column;
  float sum[kCount];
  LoadVector<kWhole>(dwpe + at + column, left, sum);
#pragma unroll 8
  for (int64_t sample = 0; sample < samples; ++sample) {
    float row[kCount];
    LoadVector<kWhole>(dout + sample * seq * width + at + column, left, row);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += row[i];
  }
  StoreVector<kWhole>(sum, left, dwpe + at + column);
}

unsigned BlocksOf(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

template <typename T, bool kWhole>
absl::Status LaunchBackward(const EmbeddingBackwardArgs<T>& a, const Stream& stream) {
  const int64_t rows = a.samples * a.seq;
  const int64_t tiles = (rows + kTile - 1) / kTile;
  const int64_t windows = (rows + kWindow - 1) / kWindow;
  const auto scratch = [&](int64_t elements, size_t bytes) {
    return ScratchBuffer::Create(static_cast<size_t>(elements) * bytes, stream);
  };
  ASSIGN_OR_RETURN(const ScratchBuffer keys, scratch(tiles * kTile, sizeof(Key)));
  ASSIGN_OR_RETURN(const ScratchBuffer sorted, scratch(rows, sizeof(Key)));
  ASSIGN_OR_RETURN(const ScratchBuffer pieces, scratch(2 * windows * a.width, sizeof(float)));
  RETURN_IF_ERROR(Launch(SortTilesKernel,
                         {static_cast<unsigned>(tiles), kSortThreads, stream, sizeof(TileShared)},
                         rows, a.tokens, keys.As<Key>()));
  RETURN_IF_ERROR(Launch(MergeTilesKernel,
                         {BlocksOf(tiles * kTile * kLanesPerKey), kThreads, stream}, tiles,
                         keys.As<Key>(), sorted.As<Key>()));
  const unsigned parts = BlocksOf(windows * Part<kVector<T>>::SlicesOf(a.width) * kWarp);
  RETURN_IF_ERROR(Launch(SumWindowsKernel<T, kWhole>, {parts, kThreads, stream}, rows, windows,
                         a.width, sorted.As<Key>(), a.dout, a.dwte, pieces.As<float>()));
  RETURN_IF_ERROR(Launch(JoinPiecesKernel<T, kWhole>, {parts, kThreads, stream}, windows, a.width,
                         sorted.As<Key>(), pieces.As<float>(), a.dwte));
  const int64_t vectors = (a.width + kVector<T> - 1) / kVector<T>;
  return Launch(PositionsKernel<T, kWhole>, {BlocksOf(a.seq * vectors), kThreads, stream},
                a.samples, a.seq, a.width, a.dout, a.dwpe);
}

}  // namespace

template <typename W, typename T>
absl::Status EmbeddingForward(const EmbeddingForwardArgs<W, T>& a, const Stream& stream) {
  const int64_t rows = a.samples * a.seq;
  if (rows == 0 || a.width == 0) return absl::OkStatus();
  const bool whole = a.width % kVector<W> == 0 && AtVectors(a.wte, a.wpe, a.out);
  const auto kernel = whole ? &ForwardKernel<W, T, true> : &ForwardKernel<W, T, false>;
  return Launch(kernel, {GridStrideBlocks(rows * kWarp, kThreads), kThreads, stream}, rows, a.seq,
                a.width, a.tokens, a.wte, a.wpe, a.out);
}

template <typename T>
absl::Status EmbeddingBackward(const EmbeddingBackwardArgs<T>& a, const Stream& stream) {
  if (a.samples == 0 || a.seq == 0 || a.width == 0) return absl::OkStatus();
  const bool whole = a.width % kVector<T> == 0 && AtVectors(a.dout, a.dwte, a.dwpe);
  return whole ? LaunchBackward<T, true>(a, stream) : LaunchBackward<T, false>(a, stream);
}

template absl::Status EmbeddingForward(const EmbeddingForwardArgs<float, float>&, const Stream&);
template absl::Status EmbeddingForward(const EmbeddingForwardArgs<float, Bf16>&, const Stream&);
template absl::Status EmbeddingForward(const EmbeddingForwardArgs<Bf16, Bf16>&, const Stream&);
template absl::Status EmbeddingBackward(const EmbeddingBackwardArgs<float>&, const Stream&);
template absl::Status EmbeddingBackward(const EmbeddingBackwardArgs<Bf16>&, const Stream&);

}  // namespace tug::kernels::cuda
