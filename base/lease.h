#ifndef TUG_BASE_LEASE_H_
#define TUG_BASE_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tug {

// Bytes aligned for SIMD and cache lines: from the heap, zero-filled, or a part of somebody else's
// memory (a shared arena), as it is. Movable, not copyable.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size_bytes)
      : data_(size_bytes == 0 ? nullptr
                              : static_cast<std::byte*>(
                                    ::operator new(size_bytes, std::align_val_t(kAlignment)))),
        size_bytes_(size_bytes) {
    if (size_bytes != 0) std::memset(data_.get(), 0, size_bytes);
  }
  // `bytes` stay valid while `owner` lives. REQUIRES: aligned to kAlignment.
  AlignedBuffer(std::shared_ptr<void> owner, std::span<std::byte> bytes)
      : data_(bytes.data(), Free{std::move(owner)}), size_bytes_(bytes.size()) {}

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
  struct Free {
    std::shared_ptr<void> owner;  // none: the heap
    void operator()(std::byte* p) const {
      if (owner == nullptr) ::operator delete(p, std::align_val_t(kAlignment));
    }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_bytes_ = 0;
};

// Read access to bytes that somebody else owns, for as long as a copy of the lease lives: a
// transport sends from it without copying, a receiver reads a message in place. The owner sees in
// `use_count` (or by its own shared_ptr) when nobody reads any more. Shared ownership because the
// last reader may be a transport's I/O thread. Copies may be destroyed on any thread.
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
  // The same owner, part of the bytes.
  Lease Slice(size_t offset_bytes, size_t size_bytes) const {
    return Lease(owner_, bytes_.subspan(offset_bytes, size_bytes));
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

// Whether nobody else shares `owned` any more; what the others did with it has then happened
// before.
template <typename T>
bool IsOnlyOwner(const std::shared_ptr<T>& owned) {
  if (owned.use_count() > 1) return false;
  // The count is read relaxed. Counting up and down again takes what the last one who dropped it
  // has released.
  std::shared_ptr<T>(owned).reset();
  return true;
}

}  // namespace tug

#endif  // TUG_BASE_LEASE_H_
