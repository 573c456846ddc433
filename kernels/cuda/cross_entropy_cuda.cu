// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cross_entropy_cuda.h"

#include "base/status_macros.h"
#include "kernels/cuda/device/block_reduce.h"
#include "kernels/cuda/device/cuda_language.h"
#include "kernels/cuda/device/vector_cuda.h"

// A block processes one row at a time; logit j belongs to thread j / 4 % threads, also in shared
// memory.
//   1. Each thread finds the largest of its logits and the sum of their exponentials in one pass: a
//      larger logit rescales the sum so far (Milakov and Gimelshein 2018, "Online normalizer
//      calculation for softmax", algorithm 3). It keeps logits in shared memory, as many as fit.
//   2. The block reduces maximum and sum, and computes the loss.
//   3. Each thread writes the gradient of its logits.
// Four logits are read, kept and written at once if rows are aligned to 16 bytes.

namespace tug::kernels::cuda {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kFour = 4;    // logits per access of a thread
constexpr int kAtOnce = 4;  // loads issued before the first is used
constexpr float kLowest = -3.402823466e38f;
constexpr unsigned kNone = 0xFFFFFFFFu;

struct Shared {
  float scratch[kWarp];
  float scale;
  float unused[kWarp - 1];
  // The row's first logits follow.
};

// sum = sum_j e^(logit_j - max); first: the first index with logit `max`.
struct Exponentials {
  float max;
  float sum;
  unsigned first;
};

// Loads four logits of a row from j on; -infinity beyond its end.
template <bool kAtVectors>
__device__ __forceinline__ void LoadFour(int64_t vocab, const float* logits, int64_t j,
                                         float (&to)[kFour]) {
  LoadVectorOrRest<kAtVectors>(logits + j, vocab - j, to);
  if (vocab - j >= kFour) return;
#pragma unroll
  for (int c = 0; c < kFour; ++c) {
    if (c >= vocab - j) to[c] = -INFINITY;
  }
}

// Reduces this thread's logits, and stores those below `kept` in `keep`. A NaN persists in the sum.
template <bool kAtVectors>
__device__ __forceinline__ Exponentials SumExponentials(int64_t vocab, const float* logits,
                                                        int64_t kept, float* keep) {
  Exponentials e = {kLowest, 0.0f, kNone};
  const int64_t apart = int64_t{blockDim.x} * kFour;
  for (int64_t begin = threadIdx.x * kFour; begin < vocab; begin += kAtOnce * apart) {
    float v[kAtOnce][kFour];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) LoadFour<kAtVectors>(vocab, logits, begin + i * apart, v[i]);
    float largest = v[0][0];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t j = begin + i * apart;
      if (j < kept) {
        *reinterpret_cast<float4*>(keep + j) = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
      }
#pragma unroll
      for (int c = 0; c < kFour; ++c) largest = fmaxf(largest, v[i][c]);
    }
    if (largest > e.max || (largest == e.max && e.first == kNone)) {
      e.sum *= expf(e.max - largest);
      e.max = largest;
#pragma unroll
      for (int at = kAtOnce * kFour - 1; at >= 0; --at) {
        const int i = at / kFour, c = at % kFour;
        if (v[i][c] == largest) e.first = static_cast<unsigned>(begin + i * apart + c);
      }
    }
#pragma unroll
    for (int at = 0; at < kAtOnce * kFour; ++at) e.sum += expf(v[at / kFour][at % kFour] - e.max);
  }
  return e;
}

// Reduces over the block; all threads get the result.
__device__ __forceinline__ Exponentials OfBlock(const Exponentials& mine, float* scratch) {
  const float max = BlockMax(mine.max, scratch);
  const float sum = BlockSum(mine.sum * expf(mine.max - max), scratch);
  auto* const firsts = reinterpret_cast<unsigned*>(scratch);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned of_warp = __reduce_min_sync(kAllLanes, mine.max == max ? mine.first : kNone);
  if (lane == 0) firsts[threadIdx.x / kWarp] = of_warp;
  __syncthreads();
  const bool is_warp = lane < static_cast<int>(blockDim.x) / kWarp;
  const unsigned first = __reduce_min_sync(kAllLanes, is_warp ? firsts[lane] : kNone);
  __syncthreads();
  return {max, sum, first};
}

// Factor: p_j = e^(logit_j - max) scale, without z_loss.
__device__ __forceinline__ float ScaleOf(const Exponentials& e, const Objective& objective) {
  if (objective.z_loss == 0) return 1.0f / e.sum;
  const double log_sum = static_cast<double>(e.max) + log(static_cast<double>(e.sum));
  return static_cast<float>((1.0 + 2.0 * static_cast<double>(objective.z_loss) * log_sum) /
                            static_cast<double>(e.sum));
}

// With log_sum = log(sum_j e^logit_j):
//   gradient_j = p_j (1 + 2 z_loss log_sum) - label_smoothing / vocab
//                - (1 - label_smoothing if j is the target)
// `gradient` may be `logits`: a thread reads its logits before it writes them.
template <bool kAtVectors, typename T>
__device__ __forceinline__ void WriteGradient(const CrossEntropyArgs<T>& a, int64_t row,
                                              int64_t kept, const float* keep, float max,
                                              float scale) {
  const int64_t vocab = a.vocab;
  const float* const logits = a.logits + row * a.stride;
  T* const gradient = a.gradient + row * a.stride;
  const int32_t target = a.targets[row];
  const float share = a.objective.label_smoothing / static_cast<float>(vocab);
  const float of_target = 1.0f - a.objective.label_smoothing;
  const int64_t apart = int64_t{blockDim.x} * kFour;
#pragma unroll 2
  for (int64_t j = threadIdx.x * kFour; j < vocab; j += apart) {
    float v[kFour];
    if (j < kept) {
      const float4 four = *reinterpret_cast<const float4*>(keep + j);
      v[0] = four.x;
      v[1] = four.y;
      v[2] = four.z;
      v[3] = four.w;
    } else {
      LoadFour<kAtVectors>(vocab, logits, j, v);
    }
#pragma unroll
    for (int c = 0; c < kFour; ++c) {
      v[c] = fmaf(expf(v[c] - max), scale, -share);
      if (j + c == target) v[c] -= of_target;
    }
    StoreVectorOrRest<kAtVectors>(v, vocab - j, gradient + j);
  }
}

template <typename T, bool kGradient, bool kAtVectors>
__global__ void __launch_bounds__(kMaxThreads)
    CrossEntropyKernel(CrossEntropyArgs<T> a, int64_t kept) {
  Shared* const shared = SharedMemory<Shared>();
  float* const keep = reinterpret_cast<float*>(shared + 1);
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const float* const from = a.logits + row * a.stride;
    const int32_t target = a.targets[row];
    if (target == kNoTarget) {
      if (threadIdx.x == 0) a.losses[row] = 0;
      if (threadIdx.x == 0 && a.correct != nullptr) a.correct[row] = 0;
      if constexpr (kGradient) {
        const float zeros[kFour] = {};
        for (int64_t j = threadIdx.x * kFour; j < a.vocab; j += int64_t{blockDim.x} * kFour) {
          StoreVectorOrRest<kAtVectors>(zeros, a.vocab - j, a.gradient + row * a.stride + j);
        }
      }
      continue;
    }
    const float target_logit = from[target];
    const Exponentials e =
        OfBlock(SumExponentials<kAtVectors>(a.vocab, from, kept, keep), shared->scratch);
    if (threadIdx.x == 0) {
      a.losses[row] = static_cast<float>(log(static_cast<double>(e.sum)) -
                                         static_cast<double>(target_logit - e.max));
      if (a.correct != nullptr) {
        const bool is_number = e.sum == e.sum;
        a.correct[row] = is_number && e.first == static_cast<unsigned>(target) ? 1 : 0;
      }
    }
    if constexpr (kGradient) {
      if (threadIdx.x == 0) shared->scale = ScaleOf(e, a.objective);
      __syncthreads();
      WriteGradient<kAtVectors>(a, row, kept, keep, e.max, shared->scale);
    }
  }
}

template <typename T, bool kGradient>
absl::Status LaunchCrossEntropy(const CrossEntropyArgs<T>& a, const Stream& stream) {
  if (a.rows == 0 || a.vocab == 0) return absl::OkStatus();
  const int64_t wanted = (a.vocab + kAtOnce * kFour - 1) / (kAtOnce * kFour);
  const int64_t whole_warps = (wanted + kWarp - 1) / kWarp * kWarp;
  const auto threads = static_cast<unsigned>(whole_warps < kMaxThreads ? whole_warps : kMaxThreads);
  int64_t kept = 0;
  if (kGradient) {
    ASSIGN_OR_RETURN(const size_t bytes, SharedBytesPerBlock());
    const auto fours = static_cast<int64_t>((bytes - sizeof(Shared)) / sizeof(float4));
    const int64_t of_row = (a.vocab + kFour - 1) / kFour;
    kept = (of_row < fours ? of_row : fours) * kFour;
  }
  const size_t shared_bytes = sizeof(Shared) + static_cast<size_t>(kept) * sizeof(float);
  const bool at_vectors = AtVectors(a.logits, a.gradient) && a.stride % kFour == 0;
  const auto kernel = at_vectors ? &CrossEntropyKernel<T, kGradient, true>
                                 : &CrossEntropyKernel<T, kGradient, false>;
  return Launch(kernel, {GridStrideBlocks(a.rows, 1), threads, stream, shared_bytes}, a, kept);
}

}  // namespace

template <typename T>
absl::Status CrossEntropy(const CrossEntropyArgs<T>& a, const Stream& stream) {
  return a.gradient == nullptr ? LaunchCrossEntropy<T, false>(a, stream)
                               : LaunchCrossEntropy<T, true>(a, stream);
}

template absl::Status CrossEntropy(const CrossEntropyArgs<float>&, const Stream&);
template absl::Status CrossEntropy(const CrossEntropyArgs<Bf16>&, const Stream&);

}  // namespace tug::kernels::cuda
