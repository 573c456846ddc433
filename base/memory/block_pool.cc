// SPDX-License-Identifier: Apache-2.0
#include "base/memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/memory/large_memory.h"

namespace tug {
namespace {

constexpr size_t kSmallest = BlockPool::kAlignment;
static_assert(BlockPool::kMaxBlockBytes == kSmallest << 11);

size_t RoundedUp(size_t size_bytes) { return std::bit_ceil(std::max(size_bytes, kSmallest)); }
size_t ClassOf(size_t rounded) { return std::countr_zero(rounded) - std::countr_zero(kSmallest); }

// Blocks from this size on are mapped individually: freeing a peak of them among small heap blocks
// would leave growing gaps.
constexpr size_t kMappedBytes = 64 << 10;

bool Mapped(size_t size_bytes) { return kMapMemory && size_bytes >= kMappedBytes; }

std::byte* NewBlock(size_t size_bytes) {
  return static_cast<std::byte*>(
      Mapped(size_bytes) ? MapLargeMemory(size_bytes)
                         : ::operator new(size_bytes, std::align_val_t(BlockPool::kAlignment)));
}

void DeleteBlock(void* block, size_t size_bytes) {
  if (Mapped(size_bytes)) return UnmapLargeMemory(block, size_bytes);
  ::operator delete(block, std::align_val_t(BlockPool::kAlignment));
}

}  // namespace

void BlockPool::Delete(FreeBlock* list, size_t block_bytes) {
  while (list != nullptr) DeleteBlock(std::exchange(list, list->next), block_bytes);
}

std::byte* BlockPool::FreeList::Take() {
  ++takes;
  if (first == nullptr) return nullptr;
  spare = std::min(spare, --count);
  return reinterpret_cast<std::byte*>(std::exchange(first, first->next));
}

void BlockPool::FreeList::Give(std::byte* block) {
  first = new (block) FreeBlock{first};
  ++count;
}

BlockPool::~BlockPool() {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < kClasses; ++i) Delete(free_[i].first, kSmallest << i);
}

BlockPool::FreeBlock* BlockPool::Trim(FreeList& list, size_t block_bytes) {
  if (list.takes < kTrimTakes) return nullptr;
  FreeBlock* trimmed = nullptr;
  for (size_t i = 0; i < list.spare / 2; ++i) {
    FreeBlock* const block = std::exchange(list.first, list.first->next);
    block->next = std::exchange(trimmed, block);
    --list.count;
    kept_bytes_ -= block_bytes;
  }
  list.takes = 0;
  list.spare = list.count;
  return trimmed;
}

std::byte* BlockPool::Take(size_t size_bytes) {
  if (size_bytes > kMaxBlockBytes) return NewBlock(size_bytes);
  const size_t rounded = RoundedUp(size_bytes);
  std::byte* taken;
  FreeBlock* trimmed;
  {
    absl::MutexLock lock(&mutex_);
    FreeList& list = free_[ClassOf(rounded)];
    taken = list.Take();
    if (taken != nullptr) kept_bytes_ -= rounded;
    trimmed = Trim(list, rounded);
  }
  Delete(trimmed, rounded);
  return taken != nullptr ? taken : NewBlock(rounded);
}

void BlockPool::Give(std::byte* block, size_t size_bytes) {
  if (size_bytes > kMaxBlockBytes) return DeleteBlock(block, size_bytes);
  const size_t rounded = RoundedUp(size_bytes);
  {
    absl::MutexLock lock(&mutex_);
    if (kept_bytes_ + rounded <= kMaxKeptBytes) {
      free_[ClassOf(rounded)].Give(block);
      kept_bytes_ += rounded;
      return;
    }
  }
  DeleteBlock(block, rounded);
}

size_t BlockPool::kept_bytes() const {
  absl::MutexLock lock(&mutex_);
  return kept_bytes_;
}

}  // namespace tug
