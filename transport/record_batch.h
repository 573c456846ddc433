// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_RECORD_BATCH_H_
#define TUG_TRANSPORT_RECORD_BATCH_H_

// Small messages to one peer, collected for one ZeroMQ message (docs/wire_format.md, "Over
// ZeroMQ"): all headers, then all payloads, each at a multiple of 8 bytes. libzmq and the kernel
// cost about the same per message whatever its size, so messages sent between two Polls share that
// cost.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory/block_pool.h"
#include "base/memory/lease.h"
#include "transport/transport.h"

namespace tug {

inline constexpr size_t kMaxRecords = 256;  // per ZeroMQ message
// Limit for the payloads of one batch; a larger payload travels as the only record.
inline constexpr size_t kMaxBatchBytes = 64 << 10;
// Payloads up to this size are copied into the batch; larger ones are sent in place.
inline constexpr size_t kSmallPayloadBytes = 8 << 10;

// Offset of the next payload after one that ends at `end`.
inline constexpr size_t PayloadOffset(size_t end) {
  return (end + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
}

// Not thread-safe.
class RecordBatch {
 public:
  explicit RecordBatch(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}

  bool empty() const { return headers_.empty(); }
  size_t records() const { return headers_.size() / kHeaderBytes; }
  // Payloads including the padding between them.
  size_t payload_bytes() const { return payload_bytes_; }
  bool Fits(size_t payload_bytes) const {
    return records() < kMaxRecords &&
           PayloadOffset(payload_bytes_) + payload_bytes <= kMaxBatchBytes;
  }

  // Seals the header and copies the payload. REQUIRES: Fits.
  void Add(PeerId self, bool checksum, const Outgoing& message);
  // Seals the header only; the caller sends the payload itself. REQUIRES: empty.
  void AddHeader(PeerId self, bool checksum, const Outgoing& message);

  std::span<const std::byte> headers() const { return headers_; }
  Lease payloads() const;
  void Clear();

 private:
  std::shared_ptr<BlockPool> pool_;
  std::vector<std::byte> headers_;    // keeps its capacity
  std::shared_ptr<PoolBlock> block_;  // of kMaxBatchBytes; null before the first payload
  size_t payload_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_RECORD_BATCH_H_
