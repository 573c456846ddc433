// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_SEND_BUFFERS_H_
#define TUG_BASE_MEMORY_SEND_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/memory/lease.h"

namespace tug {

// Recycles buffers for payloads that are not sent in place, such as encoded ones. A buffer is
// reused once it has no reader. Buffers become free roughly in the order they were taken, so
// checking the few oldest is enough. If none is free, another is allocated; up to `keep_bytes` of
// them are kept. Not thread-safe; leases may be dropped on any thread.
class SendBuffers {
 public:
  using NewBuffer = std::function<std::shared_ptr<AlignedBuffer>(size_t)>;

  // Size of the buffer allocated for a payload: rounded up, so that later ones fit too.
  static constexpr uint64_t BufferBytes(uint64_t payload_bytes) {
    constexpr uint64_t kGranularityBytes = 4096;
    return (payload_bytes + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
  }

  // Null `new_buffer`: allocate from the heap.
  SendBuffers(uint64_t keep_bytes, NewBuffer new_buffer)
      : keep_bytes_(keep_bytes), new_buffer_(std::move(new_buffer)) {}

  // A payload; the caller fills `bytes` before it shares the lease.
  struct Payload {
    Lease lease;
    std::span<std::byte> bytes;
  };
  Payload Take(size_t size_bytes);

  // Drops kept buffers beyond `keep_bytes`; one still being read is freed with its last lease.
  void set_keep_bytes(uint64_t keep_bytes);

  uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  using Buffer = std::shared_ptr<AlignedBuffer>;
  Buffer Make(size_t size_bytes) const;

  uint64_t keep_bytes_;
  const NewBuffer new_buffer_;
  std::vector<Buffer> buffers_;
  size_t oldest_ = 0;  // index into buffers_
  uint64_t kept_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_MEMORY_SEND_BUFFERS_H_
