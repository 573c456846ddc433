#ifndef TUG_BASE_SHARED_ARENA_H_
#define TUG_BASE_SHARED_ARENA_H_

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
#include "base/lease.h"
#include "base/shared_region.h"

namespace tug {

// Buffers in regions that other processes may read (SharedRegion::Sharing::kReadOnly), or in
// regions of another kind. Made for buffers whose sizes repeat (gradients, copies of weights,
// encoded partitions): what is freed waits for the next request of its size; nothing goes back to
// the kernel before the arena's end. Thread-safe.
class SharedArena : public std::enable_shared_from_this<SharedArena> {
 public:
  // Where a buffer lies: `region` counts from 0 in the order regions came into being.
  struct Place {
    uint32_t region = 0;
    uint64_t offset = 0;
  };

  struct Options {
    // Errors: those of NewBuffer.
    std::function<absl::StatusOr<std::shared_ptr<SharedRegion>>(size_t)> new_region =
        [](size_t size_bytes) {
          return SharedRegion::Create(size_bytes, SharedRegion::Sharing::kReadOnly);
        };
    // A region is twice the one before, but no larger than the largest; one that a buffer does not
    // fit is as large as the buffer. A region in memory costs what is touched of it; growing ones
    // keep their number small.
    size_t first_region_bytes = size_t{64} << 20;
    size_t largest_region_bytes = size_t{16} << 30;
  };
  static std::shared_ptr<SharedArena> Create(Options options);
  static std::shared_ptr<SharedArena> Create() { return Create(Options()); }

  // A buffer aligned for SIMD, contents unspecified; it keeps the arena alive. Errors: those of a
  // new region, RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<AlignedBuffer>> NewBuffer(size_t size_bytes);

  // Where the bytes lie; nothing if (part of them) outside the arena.
  std::optional<Place> Find(std::span<const std::byte> bytes) const;

  // Memory that it takes: what has been written of its buffers, freed ones included. Asks the
  // kernel, once for each region.
  uint64_t touched_bytes() const;

  // REQUIRES: it has come into being (as Find has said).
  std::shared_ptr<const SharedRegion> region(uint32_t index) const;

 private:
  explicit SharedArena(Options options) : options_(std::move(options)) {}
  void Free(std::span<std::byte> bytes);
  absl::StatusOr<std::span<std::byte>> Carve(size_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<SharedRegion>> regions_ ABSL_GUARDED_BY(mutex_);
  size_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last region
  std::map<size_t, std::vector<std::span<std::byte>>> free_ ABSL_GUARDED_BY(mutex_);  // by size
};

}  // namespace tug

#endif  // TUG_BASE_SHARED_ARENA_H_
