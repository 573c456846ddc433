// SPDX-License-Identifier: Apache-2.0
#include "base/memory/large_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "base/check.h"

namespace tug {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t WholePages(size_t size_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size_bytes + page - 1) / page * page;
}

void Unmap(std::byte* begin, size_t size_bytes) {
  if (size_bytes == 0) return;
  TUG_CHECK_EQ(munmap(begin, size_bytes), 0);
}

}  // namespace

void* MapLargeMemory(size_t size_bytes) {
  const size_t length = WholePages(size_bytes);
  const bool huge = length >= kHugePageBytes;
  // Room to align the start to a huge page; the excess is unmapped at once.
  const size_t room = huge ? kHugePageBytes : 0;
  if (length < size_bytes || length + room < length) throw std::bad_alloc();
  void* const mapped =
      mmap(nullptr, length + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  if (!huge) return begin;
  const size_t past = reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  const size_t before = past == 0 ? 0 : kHugePageBytes - past;
  Unmap(begin, before);
  Unmap(begin + before + length, room - before);
  // Fails on kernels without huge pages; small pages are used then.
  madvise(begin + before, length, MADV_HUGEPAGE);
  return begin + before;
}

void UnmapLargeMemory(void* memory, size_t size_bytes) {
  Unmap(static_cast<std::byte*>(memory), WholePages(size_bytes));
}

}  // namespace tug
