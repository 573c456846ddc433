#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/lease.h"
#include "kernels/attention.h"
#include "kernels/dropout_keeper.h"
#include "kernels/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/dropout-inl.h"
#include "kernels/simd-inl.h"

// A task is one (sample, head). Its queries go in blocks of kBlock; a block of queries [begin, end)
// multiplies with the keys [0, end) only, so that about half the square is never computed.
//
// Forward, per block:   S = Q K^T;  P = softmax(S / sqrt(head_dim)), kept;  D = dropout(P);  O = D
// V Backward, per block:  dV += D^T dO;  dD = dO V^T;  dS = P (dP - sum_j dP P) / sqrt(head_dim),
// dP = dropout'(dD)
//                       dQ = dS K;  dK += dS^T Q
// The last block goes first in the backward pass: it reaches every key, so it writes dK and dV and
// the others add.

HWY_BEFORE_NAMESPACE();
namespace tug::kernels::HWY_NAMESPACE {

// In place: row[0 .. visible) = softmax(scale * row), row[visible .. count) = 0.
void SoftmaxRow(int64_t visible, int64_t count, float scale, float* row) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  for (int64_t i = 0; i < visible; i += lanes) {
    largest = hn::Max(largest, KeepUpTo(LoadUpTo(row + i, visible - i), visible - i, lowest));
  }
  const auto max = hn::MaxOfLanes(d, largest);
  const auto scale_v = hn::Set(d, scale);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i < visible; i += lanes) {
    auto e = Exp(hn::Mul(hn::Sub(LoadUpTo(row + i, visible - i), max), scale_v));
    e = KeepUpTo(e, visible - i, hn::Zero(d));
    sum = hn::Add(sum, e);
    StoreUpTo(e, row + i, count - i);
  }
  for (; i < count; i += lanes) StoreUpTo(hn::Zero(d), row + i, count - i);
  const auto inverse = hn::Set(d, 1.0f / SumLanes(sum));
  for (i = 0; i < visible; i += lanes) {
    StoreUpTo(hn::Mul(LoadUpTo(row + i, visible - i), inverse), row + i, visible - i);
  }
}

// out[0 .. count) = dropout(row); `first_block`: the row's first block of 64 elements. out may be
// row.
void DropoutRow(const DropoutKeeper& keeper, uint32_t sample_offset, uint32_t first_block,
                int64_t count, const float* row, float* out) {
  HWY_ALIGN float factor[64];
  for (int64_t start = 0; start < count; start += 64) {
    const int64_t end = std::min<int64_t>(count, start + 64);
    DropoutFactors(keeper, sample_offset, first_block + static_cast<uint32_t>(start / 64), factor);
    for (int64_t i = start; i < end; i += FloatLanes()) {
      const auto v = ApplyFactor(LoadUpTo(row + i, end - i), LoadUpTo(factor + i - start, end - i));
      StoreUpTo(v, out + i, end - i);
    }
  }
}

// In place: ds = scale * p * (dp - sum_j dp_j p_j).
void SoftmaxBackwardRow(int64_t count, float scale, const float* p, float* dp) {
  const FloatTag d;
  const int64_t lanes = FloatLanes();
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) {
    sum = hn::MulAdd(LoadUpTo(p + i, count - i), LoadUpTo(dp + i, count - i), sum);
  }
  const auto mean = hn::SumOfLanes(d, sum);
  const auto scale_v = hn::Set(d, scale);
  for (int64_t i = 0; i < count; i += lanes) {
    const auto inner = hn::Sub(LoadUpTo(dp + i, count - i), mean);
    const auto weight = hn::Mul(LoadUpTo(p + i, count - i), scale_v);
    StoreUpTo(hn::Mul(weight, inner), dp + i, count - i);
  }
}

}  // namespace tug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tug::kernels {

HWY_EXPORT(SoftmaxRow);
HWY_EXPORT(DropoutRow);
HWY_EXPORT(SoftmaxBackwardRow);

namespace {

constexpr int64_t kBlock = 64;
constexpr Transpose kNo = Transpose::kNo;
constexpr Transpose kYes = Transpose::kYes;

// One (sample, head): where its matrices begin in the big tensors.
struct Head {
  int64_t sample;
  int64_t head;
  int64_t q;  // in qkv; K is `width` further on, V twice that
  int64_t probs;
  int64_t out;
};

Head HeadOfTask(const AttentionShape& shape, int64_t task) {
  const int64_t sample = task / shape.heads;
  const int64_t head = task % shape.heads;
  return {sample, head, sample * shape.seq * 3 * shape.width() + head * shape.head_dim,
          task * shape.seq * shape.seq, sample * shape.seq * shape.width() + head * shape.head_dim};
}

// Rows of attention probabilities are dropped as rows of this many elements: whole blocks of 64.
int64_t DropoutStride(int64_t seq) { return (seq + 63) / 64 * 64; }

// Queries [begin, end) of one head; `end` is also the number of keys they may reach together.
struct Block {
  int64_t begin;
  int64_t end;
  int64_t rows() const { return end - begin; }
};

// dropped[rows][seq] = dropout(in[rows][seq]), the first block.end columns; may be in place.
void DropoutBlock(const AttentionShape& shape, const DropoutKeeper& keeper, const Head& head,
                  const Block& block, const float* in, float* dropped) {
  const auto drop = HWY_DYNAMIC_DISPATCH(DropoutRow);
  for (int64_t query = block.begin; query < block.end; ++query) {
    const int64_t first = (head.head * shape.seq + query) * (DropoutStride(shape.seq) / 64);
    const int64_t at = (query - block.begin) * shape.seq;
    drop(keeper, static_cast<uint32_t>(head.sample), static_cast<uint32_t>(first), block.end,
         in + at, dropped + at);
  }
}

void ForwardBlock(const AttentionShape& shape, const DropoutKeeper& keeper, const Head& head,
                  const Block& block, const float* qkv, float* probs, float* scratch, float* out) {
  const int64_t width = shape.width();
  const int64_t stride = 3 * width;
  const float* q = qkv + head.q + block.begin * stride;
  const float* k = qkv + head.q + width;
  const float* v = qkv + head.q + 2 * width;
  float* p = probs + head.probs + block.begin * shape.seq;
  MatMulInTask(kNo, kYes, block.rows(), block.end, shape.head_dim, q, stride, k, stride, 0.0f, p,
               shape.seq);
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  const auto softmax = HWY_DYNAMIC_DISPATCH(SoftmaxRow);
  for (int64_t query = block.begin; query < block.end; ++query) {
    softmax(query + 1, block.end, scale, p + (query - block.begin) * shape.seq);
  }
  const float* dropped = p;
  if (keeper.threshold != 0) {
    DropoutBlock(shape, keeper, head, block, p, scratch);
    dropped = scratch;
  }
  MatMulInTask(kNo, kNo, block.rows(), shape.head_dim, block.end, dropped, shape.seq, v, stride,
               0.0f, out + head.out + block.begin * width, width);
}

// beta: 0 for the block that writes dK and dV, 1 for those that add to them.
void BackwardBlock(const AttentionShape& shape, const DropoutKeeper& keeper, const Head& head,
                   const Block& block, float beta, const float* dout, const float* qkv,
                   const float* probs, float* scratch, float* dqkv) {
  const int64_t width = shape.width();
  const int64_t stride = 3 * width;
  const int64_t dim = shape.head_dim;
  const int64_t q_at = head.q + block.begin * stride;
  const int64_t k_at = head.q + width;
  const int64_t v_at = head.q + 2 * width;
  const float* p = probs + head.probs + block.begin * shape.seq;
  const float* d_o = dout + head.out + block.begin * width;
  const float* dropped = p;
  if (keeper.threshold != 0) {
    DropoutBlock(shape, keeper, head, block, p, scratch);
    dropped = scratch;
  }
  MatMulInTask(kYes, kNo, block.end, dim, block.rows(), dropped, shape.seq, d_o, width, beta,
               dqkv + v_at, stride);
  float* ds = scratch;  // `dropped` has been used up
  MatMulInTask(kNo, kYes, block.rows(), block.end, dim, d_o, width, qkv + v_at, stride, 0.0f, ds,
               shape.seq);
  if (keeper.threshold != 0) DropoutBlock(shape, keeper, head, block, ds, ds);
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const auto softmax_backward = HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRow);
  for (int64_t row = 0; row < block.rows(); ++row) {
    softmax_backward(block.end, scale, p + row * shape.seq, ds + row * shape.seq);
  }
  MatMulInTask(kNo, kNo, block.rows(), dim, block.end, ds, shape.seq, qkv + k_at, stride, 0.0f,
               dqkv + q_at, stride);
  MatMulInTask(kYes, kNo, block.end, dim, block.rows(), ds, shape.seq, qkv + q_at, stride, beta,
               dqkv + k_at, stride);
}

void CheckShape(const AttentionShape& shape) {
  TUG_CHECK_LE(shape.heads * shape.seq * DropoutStride(shape.seq), int64_t{1} << 34);
}

AlignedBuffer MakeScratch(const AttentionShape& shape) {
  return AlignedBuffer(static_cast<size_t>(kBlock * shape.seq) * sizeof(float));
}

}  // namespace

void CausalAttentionForward(ThreadPool& pool, const AttentionShape& shape, const float* qkv,
                            float p, const DropoutKey& key, float* probs, float* out) {
  CheckShape(shape);
  const DropoutKeeper keeper = MakeDropoutKeeper(key, p);
  pool.ParallelFor(shape.batch * shape.heads, [&](int64_t task) {
    const Head head = HeadOfTask(shape, task);
    AlignedBuffer scratch = keeper.threshold == 0 ? AlignedBuffer() : MakeScratch(shape);
    for (int64_t begin = 0; begin < shape.seq; begin += kBlock) {
      const Block block{begin, std::min(begin + kBlock, shape.seq)};
      ForwardBlock(shape, keeper, head, block, qkv, probs, scratch.floats().data(), out);
    }
  });
}

void CausalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, const float* dout,
                             const float* qkv, const float* probs, float p, const DropoutKey& key,
                             float* dqkv) {
  CheckShape(shape);
  const DropoutKeeper keeper = MakeDropoutKeeper(key, p);
  pool.ParallelFor(shape.batch * shape.heads, [&](int64_t task) {
    const Head head = HeadOfTask(shape, task);
    AlignedBuffer scratch = MakeScratch(shape);
    const int64_t blocks = (shape.seq + kBlock - 1) / kBlock;
    for (int64_t i = blocks - 1; i >= 0; --i) {
      const Block block{i * kBlock, std::min((i + 1) * kBlock, shape.seq)};
      BackwardBlock(shape, keeper, head, block, i == blocks - 1 ? 0.0f : 1.0f, dout, qkv, probs,
                    scratch.floats().data(), dqkv);
    }
  });
}

}  // namespace tug::kernels
#endif  // HWY_ONCE
