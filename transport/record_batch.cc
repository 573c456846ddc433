// SPDX-License-Identifier: Apache-2.0
#include "transport/record_batch.h"

#include <cstring>

#include "base/check.h"
#include "transport/admission.h"

namespace tug {

void RecordBatch::Add(PeerId self, bool checksum, const Outgoing& message) {
  const std::span<const std::byte> payload = message.payload.bytes();
  TUG_CHECK(Fits(payload.size()));
  headers_.resize(headers_.size() + kHeaderBytes);
  SealHeader(self, payload, checksum, message.header, std::span(headers_).last<kHeaderBytes>());
  if (payload.empty()) return;
  if (block_ == nullptr) block_ = NewPoolBlock(pool_, kMaxBatchBytes);
  const size_t offset = PayloadOffset(payload_bytes_);
  std::memset(block_->data() + payload_bytes_, 0, offset - payload_bytes_);
  std::memcpy(block_->data() + offset, payload.data(), payload.size());
  payload_bytes_ = offset + payload.size();
}

void RecordBatch::AddHeader(PeerId self, bool checksum, const Outgoing& message) {
  TUG_CHECK(empty());
  headers_.resize(headers_.size() + kHeaderBytes);
  SealHeader(self, message.payload.bytes(), checksum, message.header,
             std::span(headers_).last<kHeaderBytes>());
}

Lease RecordBatch::payloads() const {
  if (payload_bytes_ == 0) return Lease();
  return Lease(block_, std::span<const std::byte>(block_->data(), payload_bytes_));
}

void RecordBatch::Clear() {
  headers_.clear();
  block_.reset();
  payload_bytes_ = 0;
}

}  // namespace tug
