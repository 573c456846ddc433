#ifndef TUG_KERNELS_COPY_H_
#define TUG_KERNELS_COPY_H_

#include <cstdint>

namespace tug::kernels {

// dst = src, for a destination that is not read soon: long copies go around the caches, which saves
// reading the destination's lines and keeps what is in the caches there.
//   src, dst [n], not overlapping, no alignment needed.
// One thread, no pool. Thread-safe.
void CopyForLater(const float* src, float* dst, int64_t n);

// The same around the caches, however short: for a destination that another core reads next, and
// has read before. Between cores that share no cache a line that was written is handed over more
// slowly than it is read from memory.
void CopyForAnotherCore(const float* src, float* dst, int64_t n);

}  // namespace tug::kernels

#endif  // TUG_KERNELS_COPY_H_
