#ifndef TUG_KERNELS_THREAD_SCRATCH_H_
#define TUG_KERNELS_THREAD_SCRATCH_H_

#include <cstddef>

#include "base/lease.h"

namespace tug::kernels {

// Memory for the length of one task, aligned to a cache line: the calling thread's own, kept for
// its next task. What it holds is undefined. The next call on the same thread may free it.
inline std::byte* ThreadScratch(size_t size_bytes) {
  thread_local AlignedBuffer scratch;
  if (scratch.size_bytes() < size_bytes) {
    scratch = AlignedBuffer();  // first, so that both are never held at once
    scratch = AlignedBuffer(size_bytes);
  }
  return scratch.data();
}

}  // namespace tug::kernels

#endif  // TUG_KERNELS_THREAD_SCRATCH_H_
