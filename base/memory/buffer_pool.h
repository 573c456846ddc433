// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_BUFFER_POOL_H_
#define TUG_BASE_MEMORY_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/memory/lease.h"

namespace tug {

// Recycles buffers, such as a lane's sums, so that the steady state allocates nothing and total
// memory is bounded: buffers in use, spare buffers, and received messages kept in place. Spare
// buffers are freed while the total exceeds the limit. Not thread-safe.
class BufferPool {
 public:
  explicit BufferPool(uint64_t limit_bytes = std::numeric_limits<uint64_t>::max())
      : limit_bytes_(limit_bytes) {}

  // Returns a buffer with unspecified contents.
  AlignedBuffer Take(size_t size_bytes);
  void Give(AlignedBuffer buffer);
  // Hold and Release count `bytes` of received messages that are kept in place.
  void Hold(uint64_t bytes);
  void Release(uint64_t bytes) { used_bytes_ -= bytes; }

  // Bytes taken and held.
  uint64_t used_bytes() const { return used_bytes_; }
  // Including spare buffers: at most the limit, or used_bytes() if that is larger.
  uint64_t total_bytes() const { return used_bytes_ + spare_bytes_; }
  // Peak of total_bytes().
  uint64_t max_size_bytes() const { return max_size_bytes_; }

 private:
  void Trim();

  const uint64_t limit_bytes_;
  uint64_t used_bytes_ = 0;
  uint64_t spare_bytes_ = 0;
  uint64_t max_size_bytes_ = 0;
  std::unordered_map<size_t, std::vector<AlignedBuffer>>
      spare_;  // spare buffers by size; few sizes
};

}  // namespace tug

#endif  // TUG_BASE_MEMORY_BUFFER_POOL_H_
