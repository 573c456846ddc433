// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_LEASE_H_
#define TUG_BASE_MEMORY_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "base/memory/large_memory.h"

namespace tug {

// Bytes aligned for SIMD and cache lines: either owned, zeroed memory, or an unmodified part of
// memory with another owner (a shared arena). Owned memory of kLargeMemoryBytes or more is mapped:
// pages are allocated when touched, near the thread that touches them first
// (base/memory/large_memory.h). Movable, not copyable.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size_bytes)
      : data_(Allocate(size_bytes), Free{nullptr, Mapped(size_bytes) ? size_bytes : 0}),
        size_bytes_(size_bytes) {}
  // `bytes` stay valid while `owner` lives. REQUIRES: aligned to kAlignment.
  AlignedBuffer(std::shared_ptr<void> owner, std::span<std::byte> bytes)
      : data_(bytes.data(), Free{std::move(owner), 0}), size_bytes_(bytes.size()) {}

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }
  std::span<float> floats() {
    return {reinterpret_cast<float*>(data_.get()), size_bytes_ / sizeof(float)};
  }
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(data_.get()), size_bytes_ / sizeof(float)};
  }

 private:
  static constexpr bool Mapped(size_t size_bytes) {
    return kMapMemory && size_bytes >= kLargeMemoryBytes;
  }
  static std::byte* Allocate(size_t size_bytes) {
    if (size_bytes == 0) return nullptr;
    if (Mapped(size_bytes)) return static_cast<std::byte*>(MapLargeMemory(size_bytes));
    void* const memory = ::operator new(size_bytes, std::align_val_t(kAlignment));
    std::memset(memory, 0, size_bytes);
    return static_cast<std::byte*>(memory);
  }

  struct Free {
    Free() : mapped_bytes(0) {}
    Free(std::shared_ptr<void> of, size_t mapped) : owner(std::move(of)), mapped_bytes(mapped) {}
    std::shared_ptr<void> owner;  // null: this buffer owns the memory
    size_t mapped_bytes;          // size if owned and mapped; 0: from the heap
    void operator()(std::byte* p) const {
      if (owner != nullptr) return;
      if (mapped_bytes > 0) return UnmapLargeMemory(p, mapped_bytes);
      ::operator delete(p, std::align_val_t(kAlignment));
    }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_bytes_ = 0;
};

// Read access to bytes with another owner, valid while any copy of the lease lives: a transport
// sends from it without copying, a receiver reads a message in place. The owner detects the last
// reader's exit by `use_count` of its own shared_ptr. Ownership is shared because the last reader
// may be a transport's I/O thread. Copies may be destroyed on any thread.
class Lease {
 public:
  Lease() = default;
  // `bytes` stay valid while `owner` lives.
  Lease(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  Lease(std::shared_ptr<const void> owner, std::span<const float> floats)
      : owner_(std::move(owner)), bytes_(std::as_bytes(floats)) {}

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size_bytes() const { return bytes_.size(); }
  // REQUIRES: a whole number of floats.
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }
  // Part of the bytes, with the same owner.
  Lease Slice(size_t offset_bytes, size_t size_bytes) const {
    return Lease(owner_, bytes_.subspan(offset_bytes, size_bytes));
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

// Whether `owned` has no other owner left; all earlier accesses by other owners then happened
// before the return.
template <typename T>
bool IsOnlyOwner(const std::shared_ptr<T>& owned) {
  if (owned.use_count() > 1) return false;
  // use_count() is a relaxed load. Incrementing and decrementing the count acquires what the last
  // other owner released.
  std::shared_ptr<T>(owned).reset();
  return true;
}

}  // namespace tug

#endif  // TUG_BASE_MEMORY_LEASE_H_
