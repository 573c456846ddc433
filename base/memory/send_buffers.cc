// SPDX-License-Identifier: Apache-2.0
#include "base/memory/send_buffers.h"

#include <algorithm>
#include <utility>

namespace tug {
namespace {

constexpr size_t kLooks = 4;  // buffers checked per request, oldest first

}  // namespace

SendBuffers::Buffer SendBuffers::Make(size_t size_bytes) const {
  size_bytes = BufferBytes(size_bytes);
  return new_buffer_ ? new_buffer_(size_bytes) : std::make_shared<AlignedBuffer>(size_bytes);
}

SendBuffers::Payload SendBuffers::Take(size_t size_bytes) {
  Buffer taken;
  for (size_t look = 0; look < std::min(kLooks, buffers_.size()) && taken == nullptr; ++look) {
    Buffer& buffer = buffers_[oldest_];
    oldest_ = (oldest_ + 1) % buffers_.size();
    if (!IsOnlyOwner(buffer)) continue;
    if (buffer->size_bytes() < size_bytes) {
      kept_bytes_ -= buffer->size_bytes();
      buffer = Make(size_bytes);
      kept_bytes_ += buffer->size_bytes();
    }
    taken = buffer;
  }
  if (taken == nullptr) {
    taken = Make(size_bytes);
    if (kept_bytes_ + taken->size_bytes() <= keep_bytes_) {
      kept_bytes_ += taken->size_bytes();
      buffers_.push_back(taken);
    }
  }
  const std::span<std::byte> bytes(taken->data(), size_bytes);
  return {Lease(std::move(taken), std::span<const std::byte>(bytes)), bytes};
}

void SendBuffers::set_keep_bytes(uint64_t keep_bytes) {
  keep_bytes_ = keep_bytes;
  while (kept_bytes_ > keep_bytes_ && !buffers_.empty()) {
    kept_bytes_ -= buffers_.back()->size_bytes();
    buffers_.pop_back();
  }
  oldest_ = buffers_.empty() ? 0 : oldest_ % buffers_.size();
}

}  // namespace tug
