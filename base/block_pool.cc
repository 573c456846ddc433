#include "base/block_pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace tug {
namespace {

constexpr size_t kSmallest = BlockPool::kAlignment;
static_assert(BlockPool::kMaxBlockBytes == kSmallest << 11);

size_t RoundedUp(size_t size_bytes) { return std::bit_ceil(std::max(size_bytes, kSmallest)); }
size_t ClassOf(size_t rounded) { return std::countr_zero(rounded) - std::countr_zero(kSmallest); }

std::byte* FromHeap(size_t size_bytes) {
  return static_cast<std::byte*>(
      ::operator new(size_bytes, std::align_val_t(BlockPool::kAlignment)));
}
void ToHeap(void* block) { ::operator delete(block, std::align_val_t(BlockPool::kAlignment)); }

}  // namespace

BlockPool::~BlockPool() {
  absl::MutexLock lock(&mutex_);
  for (FreeBlock* block : free_) {
    while (block != nullptr) ToHeap(std::exchange(block, block->next));
  }
}

std::byte* BlockPool::Take(size_t size_bytes) {
  if (size_bytes > kMaxBlockBytes) return FromHeap(size_bytes);
  const size_t rounded = RoundedUp(size_bytes);
  {
    absl::MutexLock lock(&mutex_);
    FreeBlock*& first = free_[ClassOf(rounded)];
    if (first != nullptr) {
      kept_bytes_ -= rounded;
      return reinterpret_cast<std::byte*>(std::exchange(first, first->next));
    }
  }
  return FromHeap(rounded);
}

void BlockPool::Give(std::byte* block, size_t size_bytes) {
  const size_t rounded = RoundedUp(size_bytes);
  if (size_bytes <= kMaxBlockBytes) {
    absl::MutexLock lock(&mutex_);
    if (kept_bytes_ + rounded <= kMaxKeptBytes) {
      FreeBlock*& first = free_[ClassOf(rounded)];
      first = new (block) FreeBlock{first};
      kept_bytes_ += rounded;
      return;
    }
  }
  ToHeap(block);
}

size_t BlockPool::kept_bytes() const {
  absl::MutexLock lock(&mutex_);
  return kept_bytes_;
}

}  // namespace tug
