// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/memory/lease.h"
#include "kernels/attention_bf16.h"
#include "kernels/cpu/attention_head.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/linear/matmul_primitive.h"
#include "kernels/cpu/linear/pack_bf16.h"
#include "kernels/cpu/linear/store_tile.h"
#include "kernels/simd/thread_scratch.h"

// Like attention_cpu.cc, with all products in bf16, each of a matrix A in row-major order and a
// packed one (pack_bf16.h). K, K^T, V and V^T of the head are packed once; per block of queries:
//
// Forward:    S = Q K^T;  P (rounded);  O = P V
// Backward:   S = Q K^T;  dW = dO V^T;  P, dS (rounded);  dQ = dS K
//             dV += P^T dO;  dK += dS^T Q, with P^T and dS^T as A, dO and Q packed
//
// Keys are padded with zeros to whole blocks of 64 columns, so that key counts add no new shapes:
// oneDNN compiles a kernel for each shape.

namespace tug::kernels {
namespace {

constexpr int64_t kQueries = AttentionBlock::kQueries;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t WholeBlocks(int64_t keys) { return RoundUp(keys, kPackedColumns); }

// Divides memory into pieces; with memory == nullptr it only counts bytes.
class Pieces {
 public:
  explicit Pieces(std::byte* memory) : memory_(memory) {}
  template <typename T>
  T* Take(int64_t count) {
    std::byte* const piece = memory_ == nullptr ? nullptr : memory_ + taken_;
    taken_ += RoundUp(count * static_cast<int64_t>(sizeof(T)), AlignedBuffer::kAlignment);
    return reinterpret_cast<T*>(piece);
  }
  size_t taken() const { return static_cast<size_t>(taken_); }

 private:
  std::byte* memory_;
  int64_t taken_ = 0;
};

// Scratch of the calling thread, valid until the thread's next call. Of: ForwardPieces or
// BackwardPieces.
template <typename Of>
Of ScratchPieces(int64_t keys, int64_t dim) {
  thread_local ThreadScratch scratch;
  Pieces count(nullptr);
  (void)Of(keys, dim, count);
  Pieces pieces(scratch.Bytes(count.taken()));
  return Of(keys, dim, pieces);
}

int64_t PackedElements(int64_t k, int64_t n) {
  return static_cast<int64_t>(PackedBytes(k, n) / sizeof(Bf16));
}

// Copies `rows` rows of a larger matrix to `to` [whole][columns], followed by zero rows.
void CopyRows(int64_t rows, int64_t whole, int64_t columns, const Bf16* from, int64_t stride,
              Bf16* to) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * stride, columns, to + row * columns);
  }
  std::fill(to + rows * columns, to + whole * columns, Bf16{});
}

void Pack(Transpose tb, int64_t k, int64_t n, const Bf16* b, Bf16* packed) {
  ZeroPadding(k, n, packed);
  for (int64_t part = 0; part < PackParts(tb, k, n); ++part) PackPart(part, tb, k, n, b, packed);
}

// c [m][n] = a [m][k] times a packed matrix, or with `accumulate` c += the product.
void Multiply(int64_t m, int64_t n, int64_t k, const Bf16* a, const Bf16* packed, bool accumulate,
              float* c) {
  MatMulPrimitive::Of({.operands = MatMulForm::Operands::kBf16ByPacked,
                       .accumulate = accumulate,
                       .m = m,
                       .n = n,
                       .k = k})
      .Run(a, packed, c);
}

// Multiplies rows of a block by the first keys of a packed matrix [keys][head_dim] and stores the
// result in the head's columns of `out`. Works on 64 columns at a time: only within a block of
// columns are the first rows contiguous.   a [rows][reach]; sums: scratch [rows][64]
void MultiplyKeys(const AttentionHead& head, const AttentionBlock& block, const Bf16* a,
                  const Bf16* packed, float* sums, Bf16* out, int64_t stride) {
  const int64_t rows = block.rows(), keys = WholeBlocks(head.keys);
  const int64_t head_dim = head.shape.head_dim;
  for (int64_t column = 0; column < head_dim; column += kPackedColumns) {
    const int64_t columns = std::min(kPackedColumns, head_dim - column);
    Multiply(rows, columns, WholeBlocks(block.reach), a, packed + PackedElements(keys, column),
             /*accumulate=*/false, sums);
    StoreTile(rows, columns, sums, nullptr, /*accumulate=*/false,
              out + block.begin * stride + column, stride);
  }
}

struct ForwardPieces {
  ForwardPieces(int64_t keys, int64_t dim, Pieces& pieces)
      : rows(pieces.Take<Bf16>(keys * dim)),
        keys_t(pieces.Take<Bf16>(PackedElements(dim, keys))),
        values(pieces.Take<Bf16>(PackedElements(keys, dim))),
        scores(pieces.Take<float>(kQueries * keys)),
        p(pieces.Take<Bf16>(kQueries * keys)),
        q(pieces.Take<Bf16>(kQueries * dim)),
        sums(pieces.Take<float>(kQueries * kPackedColumns)) {}

  Bf16* rows;    // [keys][dim], to be packed
  Bf16* keys_t;  // K^T packed
  Bf16* values;  // V packed
  float* scores;
  Bf16* p;
  Bf16* q;
  float* sums;
};

void ForwardHead(const AttentionHead& head, const AttentionForwardArgs<Bf16>& args) {
  const AttentionShape& shape = head.shape;
  const AttentionOperands<const Bf16>& in = args.in;
  float* const log_sum_exp = args.log_sum_exp + head.StatsAt();
  const int64_t dim = shape.head_dim, keys = WholeBlocks(head.keys);
  const auto use = ScratchPieces<ForwardPieces>(keys, dim);
  const int64_t kv_at = head.At(shape.keys, in.kv_stride);
  CopyRows(head.keys, keys, dim, in.k + kv_at, in.kv_stride, use.rows);
  Pack(Transpose::kYes, dim, keys, use.rows, use.keys_t);
  CopyRows(head.keys, keys, dim, in.v + kv_at, in.kv_stride, use.rows);
  Pack(Transpose::kNo, keys, dim, use.rows, use.values);
  const Bf16* const q = in.q + head.At(shape.queries, in.q_stride);
  Bf16* const o = args.out + head.At(shape.queries, shape.width());
  for (int64_t i = 0; i < BlocksOf(shape); ++i) {
    const AttentionBlock block(head, i);
    const int64_t rows = block.rows(), reach = WholeBlocks(block.reach);
    CopyRows(rows, rows, dim, q + block.begin * in.q_stride, in.q_stride, use.q);
    Multiply(rows, reach, dim, use.q, use.keys_t, /*accumulate=*/false, use.scores);
    for (int64_t query = block.begin; query < block.end; ++query) {
      const int64_t at = (query - block.begin) * reach;
      log_sum_exp[query] = LogSumExpRow(head.Visible(query), head.scale, use.scores + at);
      ProbabilitiesRow(head.RowOf(query, reach, log_sum_exp[query]), use.scores + at, use.p + at);
    }
    MultiplyKeys(head, block, use.p, use.values, use.sums, o, shape.width());
  }
}

struct BackwardPieces {
  BackwardPieces(int64_t keys, int64_t dim, Pieces& pieces)
      : rows(pieces.Take<Bf16>(keys * dim)),
        keys_t(pieces.Take<Bf16>(PackedElements(dim, keys))),
        keys(pieces.Take<Bf16>(PackedElements(keys, dim))),
        values_t(pieces.Take<Bf16>(PackedElements(dim, keys))),
        scores(pieces.Take<float>(kQueries * keys)),
        dp(pieces.Take<float>(kQueries * keys)),
        p(pieces.Take<Bf16>(kQueries * keys)),
        ds(pieces.Take<Bf16>(kQueries * keys)),
        transposed(pieces.Take<Bf16>(kQueries * keys)),
        q(pieces.Take<Bf16>(kQueries * dim)),
        d_o(pieces.Take<Bf16>(kQueries * dim)),
        packed(pieces.Take<Bf16>(PackedElements(kQueries, dim))),
        dk(pieces.Take<float>(keys * dim)),
        dv(pieces.Take<float>(keys * dim)),
        sums(pieces.Take<float>(kQueries * kPackedColumns)) {}

  Bf16* rows;
  Bf16* keys_t;    // K^T packed
  Bf16* keys;      // K packed
  Bf16* values_t;  // V^T packed
  float* scores;
  float* dp;
  Bf16* p;
  Bf16* ds;
  Bf16* transposed;  // P^T, then dS^T
  Bf16* q;
  Bf16* d_o;
  Bf16* packed;  // dO, then Q
  float* dk;
  float* dv;
  float* sums;
};

void PackHead(const AttentionHead& head, const AttentionOperands<const Bf16>& in, int64_t keys,
              const BackwardPieces& use) {
  const int64_t dim = head.shape.head_dim;
  const int64_t kv_at = head.At(head.shape.keys, in.kv_stride);
  CopyRows(head.keys, keys, dim, in.k + kv_at, in.kv_stride, use.rows);
  Pack(Transpose::kYes, dim, keys, use.rows, use.keys_t);
  Pack(Transpose::kNo, keys, dim, use.rows, use.keys);
  CopyRows(head.keys, keys, dim, in.v + kv_at, in.kv_stride, use.rows);
  Pack(Transpose::kYes, dim, keys, use.rows, use.values_t);
}

// sums [reach][dim] = a^T b, or with `accumulate` sums += a^T b.   a [rows][reach], b [rows][dim]
void AddTransposedProduct(const AttentionBlock& block, int64_t dim, const Bf16* a, const Bf16* b,
                          bool accumulate, const BackwardPieces& use, float* sums) {
  const int64_t rows = block.rows(), reach = WholeBlocks(block.reach);
  TransposeBf16(rows, reach, reach, a, use.transposed);
  Pack(Transpose::kNo, rows, dim, b, use.packed);
  Multiply(reach, dim, TransposedStride(rows), use.transposed, use.packed, accumulate, sums);
}

void RoundRows(int64_t rows, int64_t whole, int64_t columns, const float* from, Bf16* to,
               int64_t stride) {
  StoreTile(rows, columns, from, nullptr, /*accumulate=*/false, to, stride);
  for (int64_t row = rows; row < whole; ++row) std::fill_n(to + row * stride, columns, Bf16{});
}

void BackwardHead(const AttentionHead& head, const AttentionBackwardArgs<Bf16>& args) {
  const AttentionShape& shape = head.shape;
  const AttentionOperands<const Bf16>& in = args.in;
  const AttentionOperands<Bf16>& gradient = args.gradient;
  const float* const log_sum_exp = args.log_sum_exp + head.StatsAt();
  const int64_t dim = shape.head_dim, keys = WholeBlocks(head.keys);
  const auto use = ScratchPieces<BackwardPieces>(keys, dim);
  PackHead(head, in, keys, use);
  const Bf16* const q = in.q + head.At(shape.queries, in.q_stride);
  const Bf16* const d_o = args.dout + head.At(shape.queries, shape.width());
  Bf16* const dq = gradient.q + head.At(shape.queries, gradient.q_stride);
  const int64_t last = BlocksOf(shape) - 1;
  for (int64_t i = last; i >= 0; --i) {
    const AttentionBlock block(head, i);
    const int64_t rows = block.rows(), reach = WholeBlocks(block.reach);
    CopyRows(rows, rows, dim, q + block.begin * in.q_stride, in.q_stride, use.q);
    CopyRows(rows, rows, dim, d_o + block.begin * shape.width(), shape.width(), use.d_o);
    Multiply(rows, reach, dim, use.q, use.keys_t, /*accumulate=*/false, use.scores);
    Multiply(rows, reach, dim, use.d_o, use.values_t, /*accumulate=*/false, use.dp);
    for (int64_t query = block.begin; query < block.end; ++query) {
      const int64_t at = (query - block.begin) * reach;
      GradientsRow(head.RowOf(query, reach, log_sum_exp[query]), use.scores + at, use.dp + at,
                   use.ds + at, use.p + at);
    }
    AddTransposedProduct(block, dim, use.p, use.d_o, i != last, use, use.dv);
    AddTransposedProduct(block, dim, use.ds, use.q, i != last, use, use.dk);
    MultiplyKeys(head, block, use.ds, use.keys, use.sums, dq, gradient.q_stride);
  }
  const int64_t kv_at = head.At(shape.keys, gradient.kv_stride);
  const int64_t written = shape.queries == 0 ? 0 : head.keys;
  RoundRows(written, shape.keys, dim, use.dk, gradient.k + kv_at, gradient.kv_stride);
  RoundRows(written, shape.keys, dim, use.dv, gradient.v + kv_at, gradient.kv_stride);
}

}  // namespace

void Bf16AttentionForward(ThreadPool& pool, const AttentionForwardArgs<Bf16>& args,
                          const DropoutKeeper& keeper) {
  pool.ParallelFor(args.shape.batch * args.shape.heads, [&](int64_t task) {
    ForwardHead(AttentionHead(args.shape, keeper, task), args);
  });
}

void Bf16AttentionBackward(ThreadPool& pool, const AttentionBackwardArgs<Bf16>& args,
                           const DropoutKeeper& keeper) {
  pool.ParallelFor(args.shape.batch * args.shape.heads, [&](int64_t task) {
    BackwardHead(AttentionHead(args.shape, keeper, task), args);
  });
}

}  // namespace tug::kernels
