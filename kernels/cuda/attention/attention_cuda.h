// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_CUDA_ATTENTION_ATTENTION_CUDA_H_
#define TUG_KERNELS_CUDA_ATTENTION_ATTENTION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/cuda/attention/attention_backward_plan.h"
#include "kernels/cuda/device/device.h"

namespace tug::kernels::cuda {

// AttentionForward and AttentionBackward of kernels/attention.h on the GPU. Shapes, strides and
// dropout (the same elements are kept) are as there; all pointers are to device memory, including
// shape.key_counts. Papers: FlashAttention-2 (Dao 2023), algorithms 1 and 2; online softmax
// (Milakov and Gimelshein 2018).
//
// A block holds a tile of rows (say, queries) in shared memory and iterates over the tiles of the
// other side (keys) that they reach. Values of size queries x keys exist for one pair of tiles at a
// time, in registers. With s = 1 / sqrt(head_dim), m and l of each query initially -infinity and 0:
//
// Forward, for 128 queries, over tiles of 64 keys:
//   1. S = Q K^T; -infinity where a key is not reached.
//   2. m' = max(m, max of the row); P = exp(s (S - m')), l = l exp(s (m - m')) + sum of the row.
//   3. O = O exp(s (m - m')) + dropout(P) V;  m = m'.
//   4. After the last tile: out = O / l,  log_sum_exp = s m + log(l).
// Backward:
//   1. D = sum of dout out over a row.
//   2. In one pass, five products. For each tile of 128 keys, over tiles of 64 queries, transposed:
//        S' = K Q^T;  P' = exp(s S' - log_sum_exp);  dP' = dropout'(V dO^T);  dS' = P' (dP' - D);
//        dV += dropout(P') dO;  dK += s dS' Q;  dS goes through shared memory, and
//        sums of the block += dS K, in device memory, where the first tile of keys stores them.
//      A block has one or two tiles of keys, and sums that no other block writes; it skips queries
//      that do not reach its keys.
//   3. For each tile of queries: dQ = s (sums of the blocks that it reaches).
//   Or, in two passes, seven products, S and P computed twice:
//   2. For each tile of queries, over tiles of keys: S, P, dP, dS as above;  dQ += s dS K.
//   3. For each tile of keys, over tiles of queries: S, P, dP, dS again;  dV and dK as above.
// One pass is used on tensor cores with up to 8,192 keys (PlanAttentionBackward), if a block may
// have the shared memory: with head_dim above 64 it needs 146 KiB, which A100 and H100 have, and
// GPUs of compute capability 8.6, 8.9 or 12.0 do not. Everything else takes two passes. Either way
// results are summed in a fixed order, without atomics: dQ of one pass is ((t0 + t1) + (t2 + t3)) +
// ..., with t the contribution of tile t of keys, whether or not t0 and t1 are in one block.
//
// Scratch, of the stream: 4 bytes for each of batch x heads x queries, and in one pass the sums:
// scratch_bytes of PlanAttentionBackward, at most 512 MiB or those of one head. With c columns (32,
// 64 or 128), a head takes 4 c queries (keys / 256) bytes, or 4 c queries (keys / 128) if there are
// few blocks to fill a GPU; causal, about half.
//
// Numerics. Sums, softmax and log_sum_exp are FP32, in an order that differs from the CPU's; bits
// are the same in every run, and those of a sample depend on that sample alone, not on the GPU's
// size or on `limits`, except for their key_tiles. Two paths:
//   - Tensor cores: Bf16 with head_dim and all strides multiples of 8 elements and all pointers
//     aligned to 16 bytes. dropout(P) and dS are rounded to bf16 as factors. Tiles have 32, 64 or
//     128 columns: a head_dim in between costs the products of the next larger one.
//   - Otherwise, and for float: FP32 arithmetic; results are rounded once. With head_dim above 64
//     the backward pass needs 150 KiB of shared memory per block, which A100 and H100 have.
// Bounds. For Bf16, with u = 2^-8 (half a unit in the last place), w = dropout(P), query i, key j:
//   |error of out_i|  <=  u (|out_i| + a_i),  a_i = sum_j w_ij |v_j|
//   |error of D_i|    <=  u e_i,              e_i = sum over the row of |dout_i| (|out_i| + a_i)
//   |error of dv_j|   <=  u (|dv_j| + sum_i w_ij |dout_i|)
//   |error of dq_i|   <=  u (|dq_i| + s sum_j (|dS_ij| + P_ij e_i) |k_j|);  dk_j alike, with |q_i|
// each with a tenth more for what FP32 adds. log_sum_exp is within 1e-4 if scores are of order 10:
// a tensor core may truncate when it adds, 2^-23 of sum |q k| for each of head_dim terms.
//
// A query that reaches no key has out 0 and log_sum_exp -infinity. Counts in key_counts above
// `keys` are treated as `keys`.
//
// They return once the kernels are queued. Errors: those of Launch
// (kernels/cuda/device/cuda_language.h); INVALID_ARGUMENT (head_dim above kMaxHeadDim, or a
// violated requirement of kernels/attention.h).
inline constexpr int64_t kMaxHeadDim = 128;

// T is float or Bf16.
template <typename T>
absl::Status AttentionForward(const AttentionForwardArgs<T>& args, const Stream& stream);

template <typename T>
absl::Status AttentionBackward(const AttentionBackwardArgs<T>& args, const Stream& stream,
                               const AttentionBackwardLimits& limits = {});

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_CUDA_ATTENTION_ATTENTION_CUDA_H_
