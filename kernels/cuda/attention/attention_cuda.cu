// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_cuda.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "kernels/cuda/attention/attention_fp32_cuda.h"
#include "kernels/cuda/attention/attention_head_cuda.h"
#include "kernels/cuda/attention/attention_mma_cuda.h"
#include "kernels/cuda/device/vector_cuda.h"

// Entry points: they check the arguments and choose the path. Also the first kernel of the backward
// pass, which all paths share.

namespace tug::kernels::cuda {
namespace {

absl::Status CheckShape(const AttentionShape& shape, float p) {
  if (shape.head_dim > kMaxHeadDim) {
    return absl::InvalidArgumentError(
        absl::StrFormat("attention: head_dim %d is above %d", shape.head_dim, kMaxHeadDim));
  }
  if (shape.causal && shape.queries != shape.keys) {
    return absl::InvalidArgumentError(
        absl::StrFormat("attention: causal needs equal numbers of queries (%d) and keys (%d)",
                        shape.queries, shape.keys));
  }
  constexpr int64_t kMaxRows = int64_t{1} << 30;
  if (shape.queries > kMaxRows || shape.keys > kMaxRows ||
      shape.batch * shape.heads * (shape.queries + shape.keys + 64) >= int64_t{1} << 36 ||
      (p > 0 &&
       shape.heads * shape.queries * ((shape.keys + 63) / 64 * 64) > kMaxDropoutElements)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("attention: too large: %d samples of %d queries and %d keys with %d heads",
                        shape.batch, shape.queries, shape.keys, shape.heads));
  }
  if (!(p >= 0 && p < 1)) {
    return absl::InvalidArgumentError(absl::StrFormat("attention: dropout %g is not in [0, 1)", p));
  }
  return absl::OkStatus();
}

// Args: AttentionForwardArgs or AttentionBackwardArgs.
template <typename Args>
AttentionCall CallOf(const Args& args) {
  const AttentionShape& shape = args.shape;
  return {.batch = shape.batch,
          .queries = static_cast<int>(shape.queries),
          .keys = static_cast<int>(shape.keys),
          .heads = static_cast<int>(shape.heads),
          .head_dim = static_cast<int>(shape.head_dim),
          .causal = shape.causal,
          .q_stride = args.in.q_stride,
          .kv_stride = args.in.kv_stride,
          .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
          .dropout = MakeDropoutMask(args.key, args.p)};
}

template <typename T>
bool RowsAtVectors(const AttentionOperands<T>& operands) {
  return AtVectors(operands.q, operands.k, operands.v) && operands.q_stride % 8 == 0 &&
         operands.kv_stride % 8 == 0;
}

bool TensorCoresTake(int64_t head_dim) { return head_dim % 8 == 0; }

constexpr int kDotWarps = 8;

// row_dots = the sum of dout out over a row of a head. `team` lanes, a power of two, have one
// vector each of a row; heads of a query are adjacent, as in memory.
template <typename T, bool kAtVectors>
__global__ void __launch_bounds__(kDotWarps* kWarp)
    RowDotsKernel(AttentionCall call, int team, const T* __restrict__ dout,
                  const T* __restrict__ out, float* row_dots) {
  constexpr int kCount = kVector<T>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int column = lane % team * kCount;
  const int64_t rows = call.batch * call.queries * call.heads;
  const int64_t at_once = GridThreads() / team;
  // Whole warps loop together, for the shuffles.
  for (int64_t first = GlobalThread() / kWarp * (kWarp / team); first < rows; first += at_once) {
    const int64_t row = first + lane / team;
    const int64_t left = row < rows ? call.head_dim - column : 0;
    float a[kCount], b[kCount];
    LoadVectorOrRest<kAtVectors>(dout + row * call.head_dim + column, left, a);
    LoadVectorOrRest<kAtVectors>(out + row * call.head_dim + column, left, b);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum += a[i] * b[i];
    for (int apart = team / 2; apart > 0; apart /= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, apart);
    }
    const int64_t head = row % call.heads, query = row / call.heads % call.queries;
    const int64_t sample = row / call.heads / call.queries;
    if (column == 0 && left > 0) {
      row_dots[(sample * call.heads + head) * call.queries + query] = sum;
    }
  }
}

template <typename T>
absl::Status RowDots(const AttentionCall& call, const T* dout, const T* out, float* row_dots,
                     const Stream& stream) {
  constexpr int kCount = kVector<T>;
  static_assert(kMaxHeadDim <= kWarp * kCount);
  int team = 1;
  while (team * kCount < call.head_dim) team *= 2;
  const bool at_vectors = AtVectors(dout, out) && call.head_dim % kCount == 0;
  const auto kernel = at_vectors ? &RowDotsKernel<T, true> : &RowDotsKernel<T, false>;
  const int64_t threads = call.batch * call.queries * call.heads * team;
  return Launch(kernel, {GridStrideBlocks(threads, kDotWarps * kWarp), kDotWarps * kWarp, stream},
                call, team, dout, out, row_dots);
}

}  // namespace

template <typename T>
absl::Status AttentionForward(const AttentionForwardArgs<T>& args, const Stream& stream) {
  const AttentionShape& shape = args.shape;
  RETURN_IF_ERROR(CheckShape(shape, args.p));
  if (shape.stats_size() == 0) return absl::OkStatus();
  const AttentionCall call = CallOf(args);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (TensorCoresTake(shape.head_dim) && RowsAtVectors(args.in) && AtVectors(args.out)) {
      return MmaAttentionForward(call, args, stream);
    }
  }
  return Fp32AttentionForward(call, args, stream);
}

template <typename T>
absl::Status AttentionBackward(const AttentionBackwardArgs<T>& args, const Stream& stream,
                               const AttentionBackwardLimits& limits) {
  const AttentionShape& shape = args.shape;
  RETURN_IF_ERROR(CheckShape(shape, args.p));
  if (shape.batch * shape.heads == 0) return absl::OkStatus();
  AttentionCall call = CallOf(args);
  call.dq_stride = args.gradient.q_stride;
  call.dkv_stride = args.gradient.kv_stride;
  auto dots =
      ScratchBuffer::Create(static_cast<size_t>(shape.stats_size()) * sizeof(float), stream);
  if (!dots.ok()) return dots.status();
  float* const row_dots = dots->template As<float>();
  if (shape.stats_size() != 0) {
    RETURN_IF_ERROR(RowDots(call, args.dout, args.out, row_dots, stream));
  }
  if constexpr (std::is_same_v<T, Bf16>) {
    if (TensorCoresTake(shape.head_dim) && RowsAtVectors(args.in) && AtVectors(args.dout) &&
        RowsAtVectors(args.gradient)) {
      const AttentionBackwardPlan plan = PlanAttentionBackward(shape, limits);
      ASSIGN_OR_RETURN(const size_t shared_bytes, SharedBytesPerBlock());
      if (plan.one_pass && OnePassSharedBytes(call) <= shared_bytes) {
        return OnePassAttentionBackward(call, plan, args, row_dots, stream);
      }
      return TwoPassAttentionBackward(call, args, row_dots, stream);
    }
  }
  return Fp32AttentionBackward(call, args, row_dots, stream);
}

#define TUG_ATTENTION(T)                                                                  \
  template absl::Status AttentionForward(const AttentionForwardArgs<T>&, const Stream&);  \
  template absl::Status AttentionBackward(const AttentionBackwardArgs<T>&, const Stream&, \
                                          const AttentionBackwardLimits&);
TUG_ATTENTION(float)
TUG_ATTENTION(Bf16)
#undef TUG_ATTENTION

}  // namespace tug::kernels::cuda
