// SPDX-License-Identifier: Apache-2.0
#include "base/memory/buffer_pool.h"

#include <algorithm>
#include <utility>

namespace tug {

AlignedBuffer BufferPool::Take(size_t size_bytes) {
  used_bytes_ += size_bytes;
  std::vector<AlignedBuffer>& spare = spare_[size_bytes];
  if (spare.empty()) {
    Trim();
    max_size_bytes_ = std::max(max_size_bytes_, total_bytes());
    return AlignedBuffer(size_bytes);
  }
  AlignedBuffer found = std::move(spare.back());
  spare.pop_back();
  spare_bytes_ -= size_bytes;
  return found;
}

void BufferPool::Give(AlignedBuffer buffer) {
  const size_t size_bytes = buffer.size_bytes();
  used_bytes_ -= size_bytes;
  spare_bytes_ += size_bytes;
  spare_[size_bytes].push_back(std::move(buffer));
  Trim();
}

void BufferPool::Hold(uint64_t bytes) {
  used_bytes_ += bytes;
  Trim();
  max_size_bytes_ = std::max(max_size_bytes_, total_bytes());
}

void BufferPool::Trim() {
  if (total_bytes() <= limit_bytes_) return;
  for (auto& [size_bytes, buffers] : spare_) {
    while (!buffers.empty() && total_bytes() > limit_bytes_) {
      buffers.pop_back();
      spare_bytes_ -= size_bytes;
    }
  }
}

}  // namespace tug
