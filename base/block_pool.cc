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

}  // namespace

void BlockPool::ToHeap(FreeBlock* list) {
  while (list != nullptr) {
    ::operator delete(std::exchange(list, list->next), std::align_val_t(kAlignment));
  }
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
  for (const FreeList& list : free_) ToHeap(list.first);
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
  if (size_bytes > kMaxBlockBytes) return FromHeap(size_bytes);
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
  ToHeap(trimmed);
  return taken != nullptr ? taken : FromHeap(rounded);
}

void BlockPool::Give(std::byte* block, size_t size_bytes) {
  const size_t rounded = RoundedUp(size_bytes);
  if (size_bytes <= kMaxBlockBytes) {
    absl::MutexLock lock(&mutex_);
    if (kept_bytes_ + rounded <= kMaxKeptBytes) {
      free_[ClassOf(rounded)].Give(block);
      kept_bytes_ += rounded;
      return;
    }
  }
  ::operator delete(block, std::align_val_t(kAlignment));
}

size_t BlockPool::kept_bytes() const {
  absl::MutexLock lock(&mutex_);
  return kept_bytes_;
}

}  // namespace tug
