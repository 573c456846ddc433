// SPDX-License-Identifier: Apache-2.0
#include "base/memory/shared_arena.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/status_macros.h"

namespace tug {
namespace {

// Buffers of at least a page start at a page boundary.
constexpr size_t kPageBytes = 4096;

size_t RoundUp(size_t size_bytes, size_t unit) { return (size_bytes + unit - 1) / unit * unit; }

// Rounds sizes to steps of an eighth of a power of two, so that buffers of varying size (encoded
// rows) find a spare one. The untouched part of a buffer uses no memory.
size_t BufferBytes(size_t size_bytes) {
  const size_t least = std::max<size_t>(1, size_bytes);
  const size_t unit = least < kPageBytes ? AlignedBuffer::kAlignment : kPageBytes;
  return RoundUp(least, std::max(unit, std::bit_ceil(least) / 16));
}

}  // namespace

std::shared_ptr<SharedArena> SharedArena::Create(Options options) {
  return std::shared_ptr<SharedArena>(new SharedArena(std::move(options)));
}

absl::StatusOr<std::shared_ptr<AlignedBuffer>> SharedArena::NewBuffer(size_t size_bytes) {
  const size_t rounded = BufferBytes(size_bytes);
  std::span<std::byte> bytes;
  {
    absl::MutexLock lock(&mutex_);
    std::vector<std::span<std::byte>>& spare = free_[rounded];
    if (spare.empty()) {
      ASSIGN_OR_RETURN(bytes, Carve(rounded));
    } else {
      bytes = spare.back();
      spare.pop_back();
    }
  }
  std::shared_ptr<void> owner(bytes.data(),
                              [arena = shared_from_this(), bytes](void*) { arena->Free(bytes); });
  return std::make_shared<AlignedBuffer>(std::move(owner), bytes.first(size_bytes));
}

absl::StatusOr<std::span<std::byte>> SharedArena::Carve(size_t size_bytes) {
  if (size_bytes >= kPageBytes) used_bytes_ = RoundUp(used_bytes_, kPageBytes);
  if (regions_.empty() || regions_.back()->bytes().size() - used_bytes_ < size_bytes) {
    const size_t next = regions_.empty() ? options_.first_region_bytes
                                         : std::min(2 * regions_.back()->bytes().size(),
                                                    options_.largest_region_bytes);
    const size_t wanted = RoundUp(std::max(size_bytes, next), kPageBytes);
    ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, options_.new_region(wanted));
    regions_.push_back(std::move(region));
    used_bytes_ = 0;
  }
  const std::span<std::byte> bytes = regions_.back()->bytes().subspan(used_bytes_, size_bytes);
  used_bytes_ += size_bytes;
  return bytes;
}

void SharedArena::Free(std::span<std::byte> bytes) {
  absl::MutexLock lock(&mutex_);
  free_[bytes.size()].push_back(bytes);
}

std::optional<SharedArena::Place> SharedArena::Find(std::span<const std::byte> bytes) const {
  absl::MutexLock lock(&mutex_);
  for (uint32_t i = 0; i < regions_.size(); ++i) {
    const std::span<const std::byte> region = regions_[i]->bytes();
    const auto offset = static_cast<uint64_t>(bytes.data() - region.data());  // wraps if before it
    if (bytes.data() < region.data() || offset > region.size()) continue;
    if (bytes.size() > region.size() - offset) return std::nullopt;
    return Place{i, offset};
  }
  return std::nullopt;
}

uint64_t SharedArena::touched_bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t touched = 0;
  for (const std::shared_ptr<SharedRegion>& region : regions_) touched += region->touched_bytes();
  return touched;
}

std::shared_ptr<const SharedRegion> SharedArena::region(uint32_t index) const {
  absl::MutexLock lock(&mutex_);
  return regions_[index];
}

}  // namespace tug
