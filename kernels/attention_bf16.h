// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_ATTENTION_BF16_H_
#define TUG_KERNELS_ATTENTION_BF16_H_

#include "base/cpu/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/dropout_keeper.h"

namespace tug::kernels {

// AttentionForward<Bf16> and AttentionBackward<Bf16> of attention.h on a machine with bf16
// products.
// REQUIRES: HasBf16Products().
void Bf16AttentionForward(ThreadPool& pool, const AttentionForwardArgs<Bf16>& args,
                          const DropoutKeeper& keeper);
void Bf16AttentionBackward(ThreadPool& pool, const AttentionBackwardArgs<Bf16>& args,
                           const DropoutKeeper& keeper);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_ATTENTION_BF16_H_
