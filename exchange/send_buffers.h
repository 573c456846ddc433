#ifndef TUG_EXCHANGE_SEND_BUFFERS_H_
#define TUG_EXCHANGE_SEND_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/lease.h"

namespace tug {

// Memory for payloads that are not sent as they lie: encoded ones. A buffer is used again once
// nobody reads it any more. Buffers come free about in the order they were taken, so looking at the
// few oldest finds one if there is one; while none is free, more are made, of which up to
// `keep_bytes` are kept.
// Not thread-safe; the leases may be dropped on any thread.
class SendBuffers {
 public:
  using NewBuffer = std::function<std::shared_ptr<AlignedBuffer>(size_t)>;

  // Size of the buffer that is made for such a payload: rounded up, so that the next one fits too.
  static constexpr uint64_t BufferBytes(uint64_t payload_bytes) {
    constexpr uint64_t kGranularityBytes = 4096;
    return (payload_bytes + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
  }

  // `new_buffer`: none for the heap.
  SendBuffers(uint64_t keep_bytes, NewBuffer new_buffer)
      : keep_bytes_(keep_bytes), new_buffer_(std::move(new_buffer)) {}

  // A payload to be written by the caller, before anybody else sees the lease.
  struct Payload {
    Lease lease;
    std::span<std::byte> bytes;
  };
  Payload Take(size_t size_bytes);

  // Drops kept buffers beyond it; what is still read goes with its readers.
  void set_keep_bytes(uint64_t keep_bytes);

  uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  using Buffer = std::shared_ptr<AlignedBuffer>;
  Buffer Make(size_t size_bytes) const;

  uint64_t keep_bytes_;
  const NewBuffer new_buffer_;
  std::vector<Buffer> buffers_;
  size_t oldest_ = 0;  // index
  uint64_t kept_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_SEND_BUFFERS_H_
