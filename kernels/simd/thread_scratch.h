// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_SIMD_THREAD_SCRATCH_H_
#define TUG_KERNELS_SIMD_THREAD_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "base/memory/lease.h"

namespace tug::kernels {

// Scratch memory for one task at a time. Made thread_local, it is allocated by a thread's first
// task and kept for later ones.
class ThreadScratch {
 public:
  // Memory aligned to a cache line, contents undefined; valid until the next call.
  std::byte* Bytes(size_t size_bytes) {
    if (buffer_.size_bytes() < size_bytes) {
      buffer_ = AlignedBuffer();  // freed first, so that both are never held at once
      buffer_ = AlignedBuffer(size_bytes);
    }
    return buffer_.data();
  }
  float* Floats(int64_t count) {
    return reinterpret_cast<float*>(Bytes(static_cast<size_t>(count) * sizeof(float)));
  }

 private:
  AlignedBuffer buffer_;
};

}  // namespace tug::kernels

#endif  // TUG_KERNELS_SIMD_THREAD_SCRATCH_H_
