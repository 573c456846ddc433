// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_BLOCK_POOL_H_
#define TUG_BASE_MEMORY_BLOCK_POOL_H_

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tug {

// Pool of small memory blocks that are allocated and freed with every message, so that a steady
// flow of messages allocates nothing. Sizes are rounded up to powers of two, with a free list each.
// Blocks larger than kMaxBlockBytes, and freed blocks beyond kMaxKeptBytes, are returned to the
// system. So is half of the blocks that stayed unused for kTrimTakes allocations of their size;
// otherwise memory would stay at its rarest peak. Blocks are aligned to 64 bytes, contents
// unspecified.
//
// Thread-safe. Held by shared_ptr, because a block may be freed (by the last holder of a message,
// or by a transport's I/O thread) after the pool's creator is gone.
class BlockPool {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMaxBlockBytes = 128 << 10;
  static constexpr size_t kMaxKeptBytes = 32 << 20;  // unused blocks of all sizes together
  static constexpr size_t kTrimTakes = 1 << 12;

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  std::byte* Take(size_t size_bytes);
  // `size_bytes`: as passed to Take.
  void Give(std::byte* block, size_t size_bytes);

  size_t kept_bytes() const;

 private:
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr size_t kClasses = 12;  // 64 B to 128 KiB
  // Unused blocks of one size.
  struct FreeList {
    FreeBlock* first = nullptr;
    size_t count = 0;
    size_t spare = 0;  // minimum of `count` in the last `takes` allocations
    size_t takes = 0;

    std::byte* Take();  // nullptr if empty
    void Give(std::byte* block);
  };

  static void Delete(FreeBlock* list, size_t block_bytes);  // frees the whole list
  // Every kTrimTakes allocations, removes half of the unused blocks from `list` and returns them.
  FreeBlock* Trim(FreeList& list, size_t block_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::array<FreeList, kClasses> free_ ABSL_GUARDED_BY(mutex_){};
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Allocator for std::allocate_shared: object and reference count share one block, and the pool
// lives as long as they do.
template <typename T>
class PoolAllocator {
 public:
  using value_type = T;
  explicit PoolAllocator(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  template <typename U>
  PoolAllocator(const PoolAllocator<U>& other) : pool_(other.pool()) {}

  T* allocate(size_t n) {
    static_assert(alignof(T) <= BlockPool::kAlignment);
    return reinterpret_cast<T*>(pool_->Take(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) { pool_->Give(reinterpret_cast<std::byte*>(p), n * sizeof(T)); }

  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  friend bool operator==(const PoolAllocator& a, const PoolAllocator& b) {
    return a.pool_ == b.pool_;
  }

 private:
  std::shared_ptr<BlockPool> pool_;
};

// A pool block that owns its memory; leases are made from a shared_ptr to it.
class PoolBlock {
 public:
  PoolBlock(std::shared_ptr<BlockPool> pool, size_t size_bytes)
      : pool_(std::move(pool)), size_bytes_(size_bytes), data_(pool_->Take(size_bytes)) {}
  PoolBlock(const PoolBlock&) = delete;
  PoolBlock& operator=(const PoolBlock&) = delete;
  ~PoolBlock() { pool_->Give(data_, size_bytes_); }

  std::byte* data() { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  const std::shared_ptr<BlockPool> pool_;
  const size_t size_bytes_;
  std::byte* const data_;
};

inline std::shared_ptr<PoolBlock> NewPoolBlock(const std::shared_ptr<BlockPool>& pool,
                                               size_t size_bytes) {
  return std::allocate_shared<PoolBlock>(PoolAllocator<PoolBlock>(pool), pool, size_bytes);
}

}  // namespace tug

#endif  // TUG_BASE_MEMORY_BLOCK_POOL_H_
