#ifndef TUG_BASE_BUFFER_POOL_H_
#define TUG_BASE_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/lease.h"

namespace tug {

// Memory that is used again, such as that of a lane's sums, so that steady state allocates nothing
// and the whole stays bounded: buffers in use, spare ones, and received messages that are kept in
// place. Spare buffers go back to the heap when all of it exceeds the limit. Not thread-safe.
class BufferPool {
 public:
  explicit BufferPool(uint64_t limit_bytes = std::numeric_limits<uint64_t>::max())
      : limit_bytes_(limit_bytes) {}

  // Contents unspecified.
  AlignedBuffer Take(size_t size_bytes);
  void Give(AlignedBuffer buffer);
  // So many bytes of a received message are kept in place, or no longer.
  void Hold(uint64_t bytes);
  void Release(uint64_t bytes) { used_bytes_ -= bytes; }

  // Taken and held.
  uint64_t used_bytes() const { return used_bytes_; }
  // Spare ones too: at most the limit, or what is used if that is more.
  uint64_t total_bytes() const { return used_bytes_ + spare_bytes_; }
  // The most that this was.
  uint64_t most_bytes() const { return most_bytes_; }

 private:
  void Trim();

  const uint64_t limit_bytes_;
  uint64_t used_bytes_ = 0;
  uint64_t spare_bytes_ = 0;
  uint64_t most_bytes_ = 0;
  std::unordered_map<size_t, std::vector<AlignedBuffer>> spare_;  // by size; few sizes
};

}  // namespace tug

#endif  // TUG_BASE_BUFFER_POOL_H_
