#ifndef TUG_KERNELS_THREAD_SCRATCH_H_
#define TUG_KERNELS_THREAD_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "base/lease.h"

namespace tug::kernels {

// Memory for the length of a task: a thread_local one is allocated by a thread's first task and
// kept for its next ones.
class ThreadScratch {
 public:
  // Memory aligned to a cache line, its content undefined. It ends with the next call.
  std::byte* Bytes(size_t size_bytes) {
    if (buffer_.size_bytes() < size_bytes) {
      buffer_ = AlignedBuffer();  // first, so that both are never held at once
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

#endif  // TUG_KERNELS_THREAD_SCRATCH_H_
