#ifndef TUG_KERNELS_ATTENTION_BF16_H_
#define TUG_KERNELS_ATTENTION_BF16_H_

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels {

// AttentionForward<Bf16> and AttentionBackward<Bf16> of attention.h on a machine that multiplies
// bf16. REQUIRES: HasBf16Products().
void Bf16AttentionForward(ThreadPool& pool, const AttentionShape& shape,
                          const AttentionOperands<const Bf16>& in, const DropoutKeeper& keeper,
                          Bf16* out, float* log_sum_exp);
void Bf16AttentionBackward(ThreadPool& pool, const AttentionShape& shape, const Bf16* dout,
                           const AttentionOperands<const Bf16>& in, const float* log_sum_exp,
                           const DropoutKeeper& keeper, const AttentionOperands<Bf16>& gradient);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_BF16_H_
