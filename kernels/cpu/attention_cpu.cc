// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/attention_bf16.h"
#include "kernels/bf16.h"
#include "kernels/cpu/attention_head.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/matmul.h"
#include "kernels/simd/thread_scratch.h"

// A task is one (sample, head), its queries processed in blocks of kBlock. A block multiplies only
// with the first keys that its queries reach, so causal attention skips about half of the square.
// With s = 1 / sqrt(head_dim), per block:
//
// Forward:    S = Q K^T;  lse = log(sum exp(s S));  P = exp(s S - lse);  O = dropout(P) V
// Backward:   S, P as above;  dW = dO V^T;  dP = dropout'(dW);  dV += dropout(P)^T dO
//             dS = s P (dP - sum_j dP P);  dQ = dS K;  dK += dS^T Q
//
// The sum over dP P equals dO . O (Dao et al. 2022, section B.4), except where O was rounded to
// bf16: then dS, often a small difference, would carry that error. Computed from dP and P it is
// exact and costs one multiplication per element.
//
// The backward pass starts with the last block: it reaches every key that any query reaches, so it
// writes dK and dV and the others add.
//
// Bf16 uses attention_bf16.h on machines that multiply bf16. On others a head's matrices are first
// widened to FP32; gradients are rounded once they are complete. The numbers of a head (about 0.5
// MB at 256 x 64) stay in the second-level cache.

namespace tug::kernels {
namespace {

constexpr int64_t kBlock = AttentionBlock::kQueries;

// Scratch of the calling thread; valid until its next call.
float* Scratch(int64_t floats) {
  thread_local ThreadScratch scratch;
  return scratch.Floats(floats);
}

// Rows of one head in FP32: in place in a matrix of all heads, or in scratch.
template <typename F>
struct Rows {
  F* data;
  int64_t stride;

  F* Row(int64_t row) const { return data + row * stride; }
};
using ConstRows = Rows<const float>;

// scores[rows][reach] = Q K^T
void Scores(const AttentionHead& head, const AttentionBlock& block, ConstRows q, ConstRows k,
            float* scores) {
  MatMulInTask({.m = block.rows(),
                .n = block.reach,
                .k = head.shape.head_dim,
                .a = {q.Row(block.begin), q.stride},
                .b = {k.data, k.stride, Transpose::kYes},
                .c = scores,
                .ldc = block.reach});
}

// scratch: [kBlock][head.keys]
void ForwardHead(const AttentionHead& head, ConstRows q, ConstRows k, ConstRows v, float* scratch,
                 Rows<float> out, float* log_sum_exp) {
  for (int64_t i = 0; i < BlocksOf(head.shape); ++i) {
    const AttentionBlock block(head, i);
    Scores(head, block, q, k, scratch);
    for (int64_t query = block.begin; query < block.end; ++query) {
      float* const row = scratch + (query - block.begin) * block.reach;
      log_sum_exp[query] = LogSumExpRow(head.Visible(query), head.scale, row);
      ProbabilitiesRow(head.RowOf(query, block.reach, log_sum_exp[query]), row, row);
    }
    MatMulInTask({.m = block.rows(),
                  .n = head.shape.head_dim,
                  .k = block.reach,
                  .a = {scratch, block.reach},
                  .b = {v.data, v.stride},
                  .c = out.Row(block.begin),
                  .ldc = out.stride});
  }
}

struct HeadBackward {
  ConstRows q, k, v, dout;
  const float* log_sum_exp;
  Rows<float> dq, dk, dv;  // rows of padding in dk and dv are not written
  float* scratch;          // [3, or 2 without dropout][kBlock][head.keys]
};

void BackwardHead(const AttentionHead& head, const HeadBackward& h) {
  const int64_t dim = head.shape.head_dim;
  float* const p = h.scratch;
  float* const ds = p + kBlock * head.keys;
  float* const dropped = head.keeper.threshold != 0 ? ds + kBlock * head.keys : p;
  const int64_t last = BlocksOf(head.shape) - 1;
  for (int64_t i = last; i >= 0; --i) {
    const AttentionBlock block(head, i);
    const int64_t rows = block.rows(), reach = block.reach;
    const MatMulOperand<float> q = {h.q.Row(block.begin), h.q.stride};
    const MatMulOperand<float> dout = {h.dout.Row(block.begin), h.dout.stride};
    Scores(head, block, h.q, h.k, p);
    Scores(head, block, h.dout, h.v, ds);
    for (int64_t query = block.begin; query < block.end; ++query) {
      const int64_t at = (query - block.begin) * reach;
      GradientsRow(head.RowOf(query, reach, h.log_sum_exp[query]), p + at, ds + at, ds + at,
                   dropped + at);
    }
    // to = weights^T of, or to += weights^T of after the first block.
    const auto add_transposed = [&](const float* weights, const MatMulOperand<float>& of,
                                    const Rows<float>& to) {
      MatMulInTask({.m = reach,
                    .n = dim,
                    .k = rows,
                    .a = {weights, reach, Transpose::kYes},
                    .b = of,
                    .c = to.data,
                    .ldc = to.stride,
                    .accumulate = i != last});
    };
    add_transposed(dropped, dout, h.dv);
    MatMulInTask({.m = rows,
                  .n = dim,
                  .k = reach,
                  .a = {ds, reach},
                  .b = {h.k.data, h.k.stride},
                  .c = h.dq.Row(block.begin),
                  .ldc = h.dq.stride});
    add_transposed(ds, q, h.dk);
  }
}

// A head's matrices in FP32: for float the caller's own, for Bf16 copies in scratch, one after the
// other.
template <typename T>
class HeadMatrices {
 public:
  static constexpr bool kCopies = std::is_same_v<T, Bf16>;

  HeadMatrices(int64_t columns, float* scratch) : columns_(columns), free_(scratch) {}

  // Matrix [rows][columns] to read.
  ConstRows Read(int64_t rows, const T* data, int64_t stride) {
    if constexpr (kCopies) {
      float* const copy = Take(rows);
      for (int64_t row = 0; row < rows; ++row) {
        FloatFromBf16(data + row * stride, copy + row * columns_, columns_);
      }
      return {copy, columns_};
    } else {
      return {data, stride};
    }
  }
  // Matrix [rows][columns] to write; call Written afterwards.
  Rows<float> Write(int64_t rows, T* data, int64_t stride) {
    if constexpr (kCopies) {
      return {Take(rows), columns_};
    } else {
      return {data, stride};
    }
  }
  void Written(int64_t rows, Rows<float> from, T* data, int64_t stride) const {
    if constexpr (kCopies) {
      for (int64_t row = 0; row < rows; ++row) {
        Bf16FromFloat(from.Row(row), data + row * stride, columns_);
      }
    }
  }
  // Zeroes rows [begin, end).
  void Clear(int64_t begin, int64_t end, T* data, int64_t stride) const {
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(data + row * stride, columns_, T{});
    }
  }
  float* rest() const { return free_; }

 private:
  float* Take(int64_t rows) {
    float* const taken = free_;
    free_ += rows * columns_;
    return taken;
  }

  const int64_t columns_;
  float* free_;
};

void CheckShape(const AttentionShape& shape) {
  TUG_CHECK(!shape.causal || shape.queries == shape.keys)
      << shape.queries << " queries, " << shape.keys << " keys";
  TUG_CHECK_LE(shape.heads * shape.queries * ((shape.keys + 63) / 64 * 64), int64_t{1} << 34);
}

}  // namespace

template <typename T>
void AttentionForward(ThreadPool& pool, const AttentionForwardArgs<T>& args) {
  const AttentionShape& shape = args.shape;
  const AttentionOperands<const T>& in = args.in;
  CheckShape(shape);
  if (shape.stats_size() == 0) return;
  const DropoutKeeper keeper = MakeDropoutKeeper(args.key, args.p);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (HasBf16Products()) return Bf16AttentionForward(pool, args, keeper);
  }
  const int64_t widened = HeadMatrices<T>::kCopies ? 2 * shape.queries + 2 * shape.keys : 0;
  const int64_t scratch = widened * shape.head_dim + kBlock * shape.keys;
  pool.ParallelFor(shape.batch * shape.heads, [&](int64_t task) {
    const AttentionHead head(shape, keeper, task);
    HeadMatrices<T> matrices(shape.head_dim, Scratch(scratch));
    const int64_t kv_at = head.At(shape.keys, in.kv_stride);
    T* const out_at = args.out + head.At(shape.queries, shape.width());
    const ConstRows q =
        matrices.Read(shape.queries, in.q + head.At(shape.queries, in.q_stride), in.q_stride);
    const ConstRows k = matrices.Read(head.keys, in.k + kv_at, in.kv_stride);
    const ConstRows v = matrices.Read(head.keys, in.v + kv_at, in.kv_stride);
    const Rows<float> o = matrices.Write(shape.queries, out_at, shape.width());
    ForwardHead(head, q, k, v, matrices.rest(), o, args.log_sum_exp + head.StatsAt());
    matrices.Written(shape.queries, o, out_at, shape.width());
  });
}

template <typename T>
void AttentionBackward(ThreadPool& pool, const AttentionBackwardArgs<T>& args) {
  const AttentionShape& shape = args.shape;
  const AttentionOperands<const T>& in = args.in;
  const AttentionOperands<T>& gradient = args.gradient;
  CheckShape(shape);
  const DropoutKeeper keeper = MakeDropoutKeeper(args.key, args.p);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (HasBf16Products()) return Bf16AttentionBackward(pool, args, keeper);
  }
  const int64_t widened = HeadMatrices<T>::kCopies ? 3 * shape.queries + 4 * shape.keys : 0;
  const int64_t blocks = keeper.threshold != 0 ? 3 : 2;
  const int64_t scratch = widened * shape.head_dim + blocks * kBlock * shape.keys;
  pool.ParallelFor(shape.batch * shape.heads, [&](int64_t task) {
    const AttentionHead head(shape, keeper, task);
    HeadMatrices<T> matrices(shape.head_dim, Scratch(scratch));
    const int64_t kv_at = head.At(shape.keys, in.kv_stride);
    const ConstRows q =
        matrices.Read(shape.queries, in.q + head.At(shape.queries, in.q_stride), in.q_stride);
    const ConstRows k = matrices.Read(head.keys, in.k + kv_at, in.kv_stride);
    const ConstRows v = matrices.Read(head.keys, in.v + kv_at, in.kv_stride);
    const ConstRows d_o = matrices.Read(
        shape.queries, args.dout + head.At(shape.queries, shape.width()), shape.width());
    T* const dq_at = gradient.q + head.At(shape.queries, gradient.q_stride);
    T* const dk_at = gradient.k + head.At(shape.keys, gradient.kv_stride);
    T* const dv_at = gradient.v + head.At(shape.keys, gradient.kv_stride);
    const Rows<float> dq = matrices.Write(shape.queries, dq_at, gradient.q_stride);
    const Rows<float> dk = matrices.Write(head.keys, dk_at, gradient.kv_stride);
    const Rows<float> dv = matrices.Write(head.keys, dv_at, gradient.kv_stride);
    BackwardHead(head,
                 {q, k, v, d_o, args.log_sum_exp + head.StatsAt(), dq, dk, dv, matrices.rest()});
    const int64_t written = shape.queries == 0 ? 0 : head.keys;
    matrices.Written(shape.queries, dq, dq_at, gradient.q_stride);
    matrices.Written(written, dk, dk_at, gradient.kv_stride);
    matrices.Written(written, dv, dv_at, gradient.kv_stride);
    matrices.Clear(written, shape.keys, dk_at, gradient.kv_stride);
    matrices.Clear(written, shape.keys, dv_at, gradient.kv_stride);
  });
}

template void AttentionForward(ThreadPool&, const AttentionForwardArgs<float>&);
template void AttentionForward(ThreadPool&, const AttentionForwardArgs<Bf16>&);
template void AttentionBackward(ThreadPool&, const AttentionBackwardArgs<float>&);
template void AttentionBackward(ThreadPool&, const AttentionBackwardArgs<Bf16>&);

void AttentionOfOneQuery(ThreadPool& pool, const OneQueryArgs& args) {
  pool.ParallelFor(args.heads, [&](int64_t head) { OneQuery(args, head, Scratch(args.keys)); });
}

}  // namespace tug::kernels
