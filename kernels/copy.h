// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_COPY_H_
#define TUG_KERNELS_COPY_H_

#include <cstdint>

namespace tug::kernels {

// dst = src, for a destination that is not read soon. Long copies bypass the caches: the
// destination's lines are not read, and cached data stays cached.
//   src, dst [n], not overlapping, no alignment needed.
// One thread, no pool. Thread-safe.
void CopyForLater(const float* src, float* dst, int64_t n);

// dst = src, bypassing the caches at any length: for a destination that another core reads next and
// has read before. Without a shared cache, a written line takes longer to reach the other core than
// a read from memory.
void CopyForAnotherCore(const float* src, float* dst, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_COPY_H_
