// SPDX-License-Identifier: Apache-2.0
#include "base/memory/large_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/memory/lease.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(LargeMemory, IsZeroWritableAndAligned) {
  for (const size_t size : {size_t{1}, size_t{4097}, kMiB, 2 * kMiB, 5 * kMiB + 3}) {
    auto* const bytes = static_cast<std::byte*>(MapLargeMemory(size));
    const size_t alignment = size >= 2 * kMiB ? 2 * kMiB : 4096;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % alignment, 0u) << size;
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [](std::byte b) { return b == std::byte{0}; }));
    std::fill(bytes, bytes + size, std::byte{1});
    UnmapLargeMemory(bytes, size);
  }
}

// Whether `page` is mapped.
bool IsMapped(std::byte* page) {
  unsigned char resident = 0;
  return mincore(page, 1, &resident) == 0;
}

TEST(LargeMemory, LeavesNothingMapped) {
  constexpr size_t kSize = 7 * kMiB;
  auto* const bytes = static_cast<std::byte*>(MapLargeMemory(kSize));
  EXPECT_TRUE(IsMapped(bytes));
  EXPECT_TRUE(IsMapped(bytes + kSize - 4096));
  UnmapLargeMemory(bytes, kSize);
  for (size_t page = 0; page < kSize; page += kMiB) EXPECT_FALSE(IsMapped(bytes + page));
}

TEST(LargeMemory, RefusesWhatNoMachineHas) {
  EXPECT_THROW(MapLargeMemory(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(MapLargeMemory(SIZE_MAX / 2), std::bad_alloc);
}

TEST(AlignedBuffer, IsZeroOnBothSidesOfTheLimit) {
  for (const size_t size : {size_t{0}, size_t{64}, kLargeMemoryBytes - 4, kLargeMemoryBytes,
                            kLargeMemoryBytes + 4, 3 * kMiB}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0u);
    for (const float value : buffer.floats()) ASSERT_EQ(value, 0.0f);
    std::fill(buffer.floats().begin(), buffer.floats().end(), 1.0f);
  }
}

TEST(AlignedBuffer, MovesAndIsReplaced) {
  for (const size_t size : {size_t{256}, 2 * kMiB}) {
    AlignedBuffer first(size);
    first.floats()[7] = 5;
    AlignedBuffer second = std::move(first);
    EXPECT_EQ(second.floats()[7], 5.0f);
    std::vector<AlignedBuffer> pool;
    pool.push_back(std::move(second));
    AlignedBuffer back(kMiB);
    back = std::move(pool.back());
    pool.pop_back();
    EXPECT_EQ(back.size_bytes(), size);
    EXPECT_EQ(back.floats()[7], 5.0f);
    back = AlignedBuffer(64);  // heap memory; `back` may be mapped
    EXPECT_EQ(back.floats()[7], 0.0f);
  }
}

TEST(AlignedBuffer, BufferInSharedMemoryKeepsItsOwnerAlive) {
  auto arena = std::make_shared<AlignedBuffer>(2 * kMiB);
  std::weak_ptr<AlignedBuffer> watch = arena;
  AlignedBuffer part(arena, {arena->data() + kMiB, kMiB});
  arena.reset();
  EXPECT_FALSE(watch.expired());
  part.floats()[0] = 3;
  part = AlignedBuffer();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace tug
