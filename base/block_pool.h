#ifndef TUG_BASE_BLOCK_POOL_H_
#define TUG_BASE_BLOCK_POOL_H_

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tug {

// Memory for small things that come and go with every message, so that a steady flow of messages
// allocates nothing: a block that is given back is kept for the next taker. Sizes are rounded up to
// powers of two, one free list for each; larger blocks, and what exceeds kMaxKeptBytes, are not
// kept. Nor is half of the blocks that nobody needed for kTrimTakes takes of their size, or memory
// would grow for ever to the rarest peak. Blocks are aligned to 64 bytes, contents unspecified.
//
// Thread-safe. Shared, because a block may be given back (by the last holder of a message, by a
// transport's I/O thread) after its first owner is gone.
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
  // `size_bytes` as it was given to Take.
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
    size_t spare = 0;  // the least that `count` has been in the last `takes` takes
    size_t takes = 0;

    std::byte* Take();  // nullptr if there is none
    void Give(std::byte* block);
  };

  static void Delete(FreeBlock* list, size_t block_bytes);  // all of it
  // Takes the blocks off a list that have not been needed, every kTrimTakes takes.
  FreeBlock* Trim(FreeList& list, size_t block_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::array<FreeList, kClasses> free_ ABSL_GUARDED_BY(mutex_){};
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// For std::allocate_shared: object and count lie in a block of the pool, which lives as long as
// they do.
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

// A block as an owner of bytes: shared_ptr to it makes leases.
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

#endif  // TUG_BASE_BLOCK_POOL_H_
