#ifndef TUG_KERNELS_ATTENTION_CUDA_H_
#define TUG_KERNELS_ATTENTION_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/device.h"

namespace tug::kernels::cuda {

// AttentionForward and AttentionBackward of kernels/attention.h on the GPU. Shapes, strides and
// dropout (the same elements are kept) are as there; all pointers are to device memory,
// shape.key_counts too. Papers: FlashAttention-2 (Dao 2023), algorithms 1 and 2; online softmax
// (Milakov and Gimelshein 2018).
//
// A block has a tile of rows (queries, say) in shared memory and goes through the tiles of the
// other side (keys) that they reach; what is queries x keys exists for one pair of tiles at a time,
// in registers. With s = 1 / sqrt(head_dim), m and l of each query -infinity and 0 at first:
//
// Forward, for 128 queries, over tiles of 64 keys:
//   1. S = Q K^T; -infinity where a key is not reached.
//   2. m' = max(m, max of the row); P = exp(s (S - m')), l = l exp(s (m - m')) + sum of the row.
//   3. O = O exp(s (m - m')) + dropout(P) V;  m = m'.
//   4. After the last tile: out = O / l,  log_sum_exp = s m + log(l).
// Backward, three kernels, the second and third independent of each other:
//   1. D = sum of dout out over a row.
//   2. For each tile of queries, over tiles of keys: S = Q K^T;  P = exp(s S - log_sum_exp);
//      dP = dropout'(dO V^T);  dS = P (dP - D);  dQ += s dS K.
//   3. For each tile of keys, over tiles of queries, all transposed: S' = K Q^T;  P' as above;
//      dP' = dropout'(V dO^T);  dS' = P' (dP' - D);  dV += dropout(P') dO;  dK += s dS' Q.
// S and P are computed twice, so that each result has one block that adds it up, in a fixed order:
// seven products in place of five, and no atomics.
//
// Numerics. Sums, softmax and log_sum_exp are FP32, in an order that is not the CPU's; the same
// bits at every run, and those of a sample depend on that sample alone. Two paths:
//   - Tensor cores: Bf16 with head_dim and all strides multiples of 8 elements and all pointers at
//     16-byte boundaries. dropout(P) and dS are rounded to bf16 where they are factors. Tiles have
//     32, 64 or 128 columns: a head_dim between takes the products of the next.
//   - Otherwise, float too: FP32 arithmetic; results are rounded once. With head_dim above 64 the
//     backward pass needs 150 KiB of shared memory a block, which A100 and H100 have.
// Bounds. For Bf16, with u = 2^-8 (half a unit in the last place), w = dropout(P), query i, key j:
//   |error of out_i|  <=  u (|out_i| + a_i),  a_i = sum_j w_ij |v_j|
//   |error of D_i|    <=  u e_i,              e_i = sum over the row of |dout_i| (|out_i| + a_i)
//   |error of dv_j|   <=  u (|dv_j| + sum_i w_ij |dout_i|)
//   |error of dq_i|   <=  u (|dq_i| + s sum_j (|dS_ij| + P_ij e_i) |k_j|);  dk_j alike, with |q_i|
// each with a tenth more for what FP32 adds. log_sum_exp is within 1e-4 where scores are of order
// 10: a tensor core may add by truncation, 2^-23 of sum |q k| for each of head_dim terms.
//
// `out` of AttentionBackward is the forward pass's. A query that reaches no key has out 0 and
// log_sum_exp -infinity. Counts in key_counts that are above `keys` count as `keys`.
//
// They return when the kernels are queued. Errors: those of Launch (kernels/cuda_language.h);
// INVALID_ARGUMENT (head_dim above kMaxHeadDim; what kernels/attention.h requires).
inline constexpr int64_t kMaxHeadDim = 128;

// T is float or Bf16.
template <typename T>
absl::Status AttentionForward(const AttentionShape& shape, const AttentionOperands<const T>& in,
                              float p, const DropoutKey& key, T* out, float* log_sum_exp,
                              const Stream& stream);

template <typename T>
absl::Status AttentionBackward(const AttentionShape& shape, const T* dout,
                               const AttentionOperands<const T>& in, const T* out,
                               const float* log_sum_exp, float p, const DropoutKey& key,
                               const AttentionOperands<T>& gradient, const Stream& stream);

}  // namespace tug::kernels::cuda

#endif  // TUG_KERNELS_ATTENTION_CUDA_H_
