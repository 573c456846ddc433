#ifndef TUG_TRANSPORT_RECORD_BATCH_H_
#define TUG_TRANSPORT_RECORD_BATCH_H_

// Small messages to one peer on their way into one ZeroMQ message (docs/wire_format.md, "Over
// ZeroMQ"): headers one after another, then payloads one after another, each beginning at a
// multiple of 8 bytes. A message costs libzmq and the kernel about the same however small it is, so
// what is sent between two Polls shares that cost.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/block_pool.h"
#include "base/lease.h"
#include "transport/transport.h"

namespace tug {

inline constexpr size_t kMaxRecords = 256;  // of one ZeroMQ message
// Payloads of a batch together; a larger one travels as the only record.
inline constexpr size_t kMaxBatchBytes = 64 << 10;
// Up to here a payload is copied into the batch, above it is sent from where it lies.
inline constexpr size_t kSmallPayloadBytes = 8 << 10;

// Where the next payload begins after one that ends at `end`.
inline constexpr size_t PayloadOffset(size_t end) {
  return (end + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
}

// Not thread-safe.
class RecordBatch {
 public:
  explicit RecordBatch(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}

  bool empty() const { return headers_.empty(); }
  size_t records() const { return headers_.size() / kHeaderBytes; }
  // Payloads and the padding between them.
  size_t payload_bytes() const { return payload_bytes_; }
  bool Fits(size_t payload_bytes) const {
    return records() < kMaxRecords &&
           PayloadOffset(payload_bytes_) + payload_bytes <= kMaxBatchBytes;
  }

  // Seals the header and copies the payload. REQUIRES: it fits.
  void Add(PeerId self, bool checksum, const Outgoing& message);
  // Seals the header only: the payload is sent in place of the batch's payloads. REQUIRES: empty.
  void AddHeader(PeerId self, bool checksum, const Outgoing& message);

  std::span<const std::byte> headers() const { return headers_; }
  Lease payloads() const;
  void Clear();

 private:
  std::shared_ptr<BlockPool> pool_;
  std::vector<std::byte> headers_;    // keeps its capacity
  std::shared_ptr<PoolBlock> block_;  // of kMaxBatchBytes; none before the first payload
  size_t payload_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_RECORD_BATCH_H_
