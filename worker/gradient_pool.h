#ifndef TUG_WORKER_GRADIENT_POOL_H_
#define TUG_WORKER_GRADIENT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"

namespace tug {

// Memory for the gradients of a worker that lets go of them when lanes have received them
// (proto/placement_mode.h: frees_gradients): `most_blocks` buffers, as large as the so many largest
// blocks. A gradient takes the smallest free one that holds it.
// Where there is one for each block, all may be in use at a time: then it takes one of its own
// size.
//
// What a worker holds at most is known beforehand: 4 bytes for each element of the `most_blocks`
// largest blocks. Only where that would keep the job from going on, it holds one more for a while
// (TakeBeyond): a lane that has no memory for a push says so, and may wait for pushes that this
// worker has yet to make, if it carries several virtual workers (server/push_admission.h).
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

  // `block_bytes`: by block, not empty. Allocates all buffers. REQUIRES: most_blocks >= 1.
  GradientPool(std::span<const size_t> block_bytes, uint32_t most_blocks, NewBuffer new_buffer);

  // For the block's gradient, until it is pushed and received. At least its size; contents
  // unspecified. Null: none that is free is large enough.
  std::shared_ptr<AlignedBuffer> Take(uint32_t block);
  // Beyond the bound.
  std::shared_ptr<AlignedBuffer> TakeBeyond(uint32_t block);
  // If none is free: the oldest push has been received, or may not be for a while, since a lane has
  // no memory for it; `may_exceed`: then the worker does not wait for it. Null: it waits.
  std::shared_ptr<AlignedBuffer> TakeAfter(uint32_t block, bool received, bool may_exceed);
  // What was taken for the block last has been pushed. REQUIRES: taken, and not pushed.
  void OnPushed(uint32_t block, uint32_t virtual_worker);
  // The push to wait for, if nothing is free.
  std::optional<Pushed> oldest() const;
  // The oldest has been received: its buffer is free. REQUIRES: there is one.
  void OnReceived();

  // Of all buffers, the most there were at a time.
  uint64_t most_bytes() const { return most_bytes_; }

 private:
  struct Slot {
    size_t size_bytes = 0;
    std::shared_ptr<AlignedBuffer> buffer;
    bool free = true;
    bool beyond = false;  // goes when it is free
  };
  struct InUse {
    Pushed push;
    size_t slot = 0;
  };

  bool Fits(size_t slot_bytes, size_t size_bytes) const;
  std::shared_ptr<AlignedBuffer> Use(size_t slot, uint32_t block);

  const std::vector<size_t> block_bytes_;
  const NewBuffer new_buffer_;
  const bool holds_all_;                        // a buffer for each block
  std::vector<Slot> slots_;                     // by size, then those beyond
  std::vector<std::optional<size_t>> slot_of_;  // by block: taken, not pushed
  std::deque<InUse> pushed_;                    // oldest first
  uint64_t held_bytes_ = 0;
  uint64_t most_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENT_POOL_H_
