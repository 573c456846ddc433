// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_MEMORY_SHARED_ARENA_H_
#define TUG_BASE_MEMORY_SHARED_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/memory/lease.h"
#include "base/memory/shared_region.h"

namespace tug {

// Buffers in regions that other processes may read (SharedRegion::Sharing::kReadOnly), or in
// regions of another kind (Options::new_region). For buffers of recurring sizes (gradients, copies
// of weights, encoded partitions): a freed buffer is reused for the next request of its size;
// memory returns to the kernel only with the arena. Thread-safe.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // Location of a buffer: `region` counts from 0 in order of creation.
  struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
  };

  struct Options {
    // Creates a region. Errors: those of NewBuffer.
    std::function<absl::StatusOr<std::shared_ptr<SharedRegion>>(size_t)> new_region =
        [](size_t size_bytes) {
          return SharedRegion::Create(size_bytes, SharedRegion::Sharing::kReadOnly);
        };
    // Each region is twice the size of the previous one, up to the largest; a buffer that does not
    // fit gets a region of its own size. Only touched pages of a region use memory; growing sizes
    // keep the number of regions small.
    size_t first_region_bytes = size_t{64} << 20;
    size_t largest_region_bytes = size_t{16} << 30;
  };
  static std::shared_ptr<SharedArena> Create(Options options);
  static std::shared_ptr<SharedArena> Create() { return Create(Options()); }

  // Returns a buffer aligned for SIMD, contents unspecified; it keeps the arena alive. Errors:
  // RESOURCE_EXHAUSTED, or those of Options::new_region.
  absl::StatusOr<std::shared_ptr<AlignedBuffer>> NewBuffer(size_t size_bytes);

  // Location of the bytes; none if any lie outside the arena.
  std::optional<Place> Find(std::span<const std::byte> bytes) const;

  // Memory in use: touched pages of all buffers, including freed ones. One system call per region.
  uint64_t touched_bytes() const;

  // REQUIRES: the region exists (its index came from Find).
  std::shared_ptr<const SharedRegion> region(uint32_t index) const;

 private:
  explicit SharedArena(Options options) : options_(std::move(options)) {}
  void Free(std::span<std::byte> bytes);
  absl::StatusOr<std::span<std::byte>> Carve(size_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<SharedRegion>> regions_ ABSL_GUARDED_BY(mutex_);
  size_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // in the last region
  std::map<size_t, std::vector<std::span<std::byte>>> free_ ABSL_GUARDED_BY(mutex_);  // by size
};

}  // namespace tug

#endif  // TUG_BASE_MEMORY_SHARED_ARENA_H_
