// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_GRADIENT_POOL_H_
#define TUG_WORKER_GRADIENTS_GRADIENT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/lease.h"

namespace tug {

// Gradient memory of a worker that frees gradients once lanes have received them
// (config/placement_mode.h: frees_gradients): `max_blocks` buffers with the sizes of the largest
// blocks. A gradient takes the smallest free buffer that fits. With one buffer per block, all may
// be in use concurrently, so each gradient takes one of exactly its size.
//
// The bound is known in advance: 4 bytes per element of the `max_blocks` largest blocks. The
// worker exceeds it by a temporary buffer (AllocateBeyondBound) only to avoid a deadlock: a lane
// that defers a push for lack of memory may wait for pushes that this worker has not made yet, if
// it runs several virtual workers (server/pushes/push_admission.h).
//
// Paper: Rajbhandari et al. 2020, ZeRO, section 5.2 (P_os+g). Not thread-safe: owned by the compute
// thread.
class GradientPool {
 public:
  using NewBuffer = std::function<std::shared_ptr<AlignedBuffer>(size_t)>;
  struct Pushed {
    uint32_t block = 0;
    uint32_t virtual_worker = 0;  // its number

    friend bool operator==(const Pushed&, const Pushed&) = default;
  };

  // `block_bytes`: by block, not empty. Allocates all buffers. REQUIRES: max_blocks >= 1.
  GradientPool(std::span<const size_t> block_bytes, uint32_t max_blocks, NewBuffer new_buffer);

  // Buffer for the block's gradient, until it is pushed and received. At least its size; contents
  // unspecified. Null: no free buffer is large enough.
  std::shared_ptr<AlignedBuffer> Take(uint32_t block);
  // Allocates a buffer beyond the bound.
  std::shared_ptr<AlignedBuffer> AllocateBeyondBound(uint32_t block);
  // Buffer when none is free. `received`: the oldest push has been received; false: a lane may
  // defer it for a while, for lack of memory. `may_exceed`: the worker does not wait for that.
  // Null: wait.
  std::shared_ptr<AlignedBuffer> TakeAfter(uint32_t block, bool received, bool may_exceed);
  // The buffer that was taken last for the block has been pushed. REQUIRES: taken, and not pushed.
  void OnPushed(uint32_t block, uint32_t virtual_worker);
  // Push to wait for if no buffer is free.
  std::optional<Pushed> oldest() const;
  // The oldest push has been received: frees its buffer. REQUIRES: oldest().
  void OnReceived();

  // Peak bytes of all buffers.
  uint64_t max_size_bytes() const { return max_size_bytes_; }

 private:
  struct Slot {
    size_t size_bytes = 0;
    std::shared_ptr<AlignedBuffer> buffer;
    bool free = true;
    bool beyond = false;  // beyond the bound: deallocated when free
  };
  struct InUse {
    Pushed push;
    size_t slot = 0;
  };

  bool Fits(size_t slot_bytes, size_t size_bytes) const;
  std::shared_ptr<AlignedBuffer> Use(size_t slot, uint32_t block);

  const std::vector<size_t> block_bytes_;
  const NewBuffer new_buffer_;
  const bool holds_all_;                        // one buffer per block
  std::vector<Slot> slots_;                     // by size, then those beyond the bound
  std::vector<std::optional<size_t>> slot_of_;  // by block: taken, not pushed
  std::deque<InUse> pushed_;                    // oldest first
  uint64_t held_bytes_ = 0;
  uint64_t max_size_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_GRADIENT_POOL_H_
