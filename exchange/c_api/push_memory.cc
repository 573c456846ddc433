// SPDX-License-Identifier: Apache-2.0
#include "exchange/c_api/push_memory.h"

#include <utility>

#include "base/check.h"

namespace tug {

void* PushMemory::Keep(std::shared_ptr<AlignedBuffer> buffer) {
  absl::MutexLock lock(&mutex_);
  buffers_.push_back(std::move(buffer));
  return buffers_.back()->data();
}

std::shared_ptr<AlignedBuffer> PushMemory::Find(std::span<const std::byte> bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  if (begin % AlignedBuffer::kAlignment != 0) return nullptr;
  for (const std::shared_ptr<AlignedBuffer>& buffer : buffers_) {
    const auto first = reinterpret_cast<uintptr_t>(buffer->data());
    if (begin >= first && begin - first <= buffer->size_bytes() &&
        bytes.size() <= buffer->size_bytes() - (begin - first)) {
      return buffer;
    }
  }
  return nullptr;
}

bool PushMemory::Holds(std::span<const std::byte> bytes) const {
  absl::MutexLock lock(&mutex_);
  return Find(bytes) != nullptr;
}

Lease PushMemory::LeaseOut(std::span<const std::byte> bytes, uint64_t ticket) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<AlignedBuffer> buffer = Find(bytes);
  TUG_CHECK(buffer != nullptr);
  read_.insert(ticket);
  const void* first = bytes.data();
  return Lease(std::shared_ptr<const void>(
                   first,
                   [self = shared_from_this(), buffer = std::move(buffer), ticket](const void*) {
                     absl::MutexLock returned(&self->mutex_);
                     self->read_.erase(ticket);
                   }),
               bytes);
}

void PushMemory::AwaitUnread(uint64_t ticket) const {
  absl::MutexLock lock(&mutex_);
  const auto unread = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended_ || !read_.contains(ticket);
  };
  mutex_.Await(absl::Condition(&unread));
}

void PushMemory::End() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

}  // namespace tug
