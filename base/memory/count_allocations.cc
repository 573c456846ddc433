// SPDX-License-Identifier: Apache-2.0
#include "base/memory/count_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> allocations = 0;

void* Allocate(size_t size_bytes, size_t alignment) {
  ++allocations;
  const size_t rounded = (size_bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: else the compiler warns about mismatched new and delete.
[[gnu::noinline]] void* operator new(size_t size_bytes) {
  return Allocate(size_bytes, alignof(std::max_align_t));
}
// Used by std::stable_sort.
[[gnu::noinline]] void* operator new(size_t size_bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size_bytes);
}
[[gnu::noinline]] void* operator new(size_t size_bytes, std::align_val_t alignment) {
  return Allocate(size_bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tug {

uint64_t CountAllocations() { return allocations; }

}  // namespace tug
