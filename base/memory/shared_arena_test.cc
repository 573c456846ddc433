// SPDX-License-Identifier: Apache-2.0
#include "base/memory/shared_arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "gtest/gtest.h"

namespace tug {
namespace {

using Sharing = SharedRegion::Sharing;

std::shared_ptr<SharedRegion> Create(size_t size_bytes, Sharing sharing) {
  auto region = SharedRegion::Create(size_bytes, sharing);
  EXPECT_TRUE(region.ok()) << region.status();
  return *std::move(region);
}

FileDescriptor Duplicate(const SharedRegion& region) { return FileDescriptor(dup(region.fd())); }

TEST(SharedRegion, MappingReadsWritesOfAnotherMapping) {
  const auto mine = Create(1 << 20, Sharing::kReadOnly);
  const auto theirs = SharedRegion::Map(Duplicate(*mine), Sharing::kReadOnly);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  ASSERT_EQ((*theirs)->bytes().size(), size_t{1} << 20);
  EXPECT_EQ((*theirs)->bytes()[12345], std::byte{0});
  mine->bytes()[12345] = std::byte{42};
  EXPECT_EQ((*theirs)->bytes()[12345], std::byte{42});
}

TEST(SharedRegion, RefusesWritesToReadOnlyRegion) {
  const auto mine = Create(4096, Sharing::kReadOnly);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mine->fd(), 0), MAP_FAILED);
  EXPECT_LT(pwrite(mine->fd(), "x", 1, 0), 0);
}

TEST(SharedRegion, SizeIsSealed) {
  const auto mine = Create(8192, Sharing::kReadWrite);
  EXPECT_NE(ftruncate(mine->fd(), 4096), 0);
  EXPECT_NE(ftruncate(mine->fd(), 16384), 0);
}

TEST(SharedRegion, RefusesMemoryThatItsOwnerCanCut) {
  FileDescriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_TRUE(
      absl::IsInvalidArgument(SharedRegion::Map(std::move(unsealed), Sharing::kReadOnly).status()));
  FileDescriptor not_memory(open("/dev/null", O_RDWR));
  EXPECT_TRUE(absl::IsInvalidArgument(
      SharedRegion::Map(std::move(not_memory), Sharing::kReadOnly).status()));
}

std::shared_ptr<AlignedBuffer> New(SharedArena& arena, size_t size_bytes) {
  auto buffer = arena.NewBuffer(size_bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return *std::move(buffer);
}

std::span<const std::byte> BytesOf(const AlignedBuffer& buffer) {
  return {buffer.data(), buffer.size_bytes()};
}

TEST(SharedArena, BuffersAreAlignedApartAndFoundAgain) {
  const auto arena = SharedArena::Create();
  std::vector<std::shared_ptr<AlignedBuffer>> buffers;
  for (const size_t size : {size_t{1}, size_t{64}, size_t{4095}, size_t{4096}, size_t{1} << 20,
                            size_t{3} << 20, size_t{100} << 20, size_t{7}}) {
    buffers.push_back(New(*arena, size));
    ASSERT_EQ(buffers.back()->size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back()->data()) % AlignedBuffer::kAlignment, 0u);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::memset(buffers[i]->data(), static_cast<int>(i + 1), buffers[i]->size_bytes());
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto bytes = BytesOf(*buffers[i]);
    EXPECT_EQ(bytes.front(), static_cast<std::byte>(i + 1));
    EXPECT_EQ(bytes.back(), static_cast<std::byte>(i + 1));
    const auto place = arena->Find(bytes);
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(arena->region(place->region)->bytes().data() + place->offset, bytes.data());
  }
}

TEST(SharedArena, FindsOnlyWhatLiesWhollyInside) {
  const auto arena = SharedArena::Create();
  const auto buffer = New(*arena, 100);
  const AlignedBuffer heap(100);
  EXPECT_FALSE(arena->Find(BytesOf(heap)).has_value());
  const auto region = arena->region(0)->bytes();
  EXPECT_TRUE(arena->Find(region.last(10)).has_value());
  EXPECT_FALSE(arena->Find({region.data() + region.size() - 10, 11}).has_value());
}

TEST(SharedArena, AFreedBufferServesTheNextOfItsSize) {
  const auto arena = SharedArena::Create();
  auto first = New(*arena, 1 << 20);
  const std::byte* const at = first->data();
  const auto second = New(*arena, 1 << 20);
  EXPECT_NE(second->data(), at);
  first.reset();
  EXPECT_EQ(New(*arena, 1 << 20)->data(), at);
}

TEST(SharedArena, CountsWhatIsTouched) {
  constexpr size_t kBytes = size_t{100} << 20;
  const auto arena = SharedArena::Create();
  EXPECT_EQ(arena->touched_bytes(), 0u);
  auto buffer = New(*arena, kBytes);
  EXPECT_EQ(arena->touched_bytes(), 0u);
  std::memset(buffer->data(), 1, buffer->size_bytes() / 2);
  // Counted in pages, which may be huge.
  constexpr uint64_t kHugePage = uint64_t{2} << 20;
  EXPECT_GE(arena->touched_bytes(), kBytes / 2);
  EXPECT_LE(arena->touched_bytes(), kBytes / 2 + kHugePage);
  std::memset(buffer->data(), 1, buffer->size_bytes());
  buffer.reset();
  EXPECT_GE(arena->touched_bytes(), kBytes) << "it keeps what is freed";
}

TEST(SharedArena, BuffersOutliveTheArena) {
  auto arena = SharedArena::Create();
  const auto buffer = New(*arena, 1 << 20);
  arena.reset();
  buffer->floats()[1000] = 1.0f;
  EXPECT_EQ(buffer->floats()[1000], 1.0f);
}

}  // namespace
}  // namespace tug
