// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_WEIGHT_MEMORY_H_
#define TUG_WORKER_GRADIENTS_WEIGHT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/buffer_pool.h"
#include "base/memory/lease.h"
#include "blocks/requests.h"
#include "model/layers/block_window.h"
#include "model/model.h"

namespace tug {

// A worker's weights, by block: read in the lanes' memory, or in memory of its own that pulls write
// to. Without a window every block has own memory from the beginning, but uses no pages before they
// are written. With a window, a block has memory from Take to Drop, and free memory is reused: at
// most the bytes of the blocks of a window (MostInWindow).
//
// Blocks that are read in the lanes' memory take none. They are known in advance (`in_place`), and
// counted if they are copied after all. Not thread-safe: owned by the compute thread.
class WeightMemory {
 public:
  // By block: bytes, and whether it is expected to be read in place. `bf16`: format of the weights,
  // else FP32. REQUIRES: as many blocks as the window has; no bytes are 0.
  WeightMemory(std::span<const size_t> block_bytes, std::vector<bool> in_place,
               const std::optional<BlockWindow>& window, bool bf16 = false);

  // Own memory for the block's weights; contents unspecified. REQUIRES: with a window, it was
  // taken.
  AlignedBuffer& of(uint32_t block) { return blocks_[block].own; }
  // With a window. REQUIRES: not taken, or taken respectively, and not read or written by any
  // thread.
  void Take(uint32_t block);
  void Drop(uint32_t block);
  // Weights were written into the block's own memory.
  void OnCopied(uint32_t block);

  // Sets the destination of a pull: own memory, if weights do not arrive in place. REQUIRES:
  // nothing reads the previous weights.
  void SetDestination(PullRequest& request);
  // The weights have arrived. `in_place` empty: in the destination.
  void OnPulled(uint32_t block, InPlaceWeights in_place);
  // Nothing reads the weights in place any longer.
  void EndInPlace(uint32_t block) { blocks_[block].lanes = {}; }
  WeightsView ViewOf(uint32_t block);

  // Peak bytes.
  uint64_t max_size_bytes() const { return max_size_bytes_; }

 private:
  struct Block {
    size_t size_bytes = 0;
    bool in_place = false;
    bool counted = false;  // in addition to the pool
    AlignedBuffer own;
    InPlaceWeights lanes;  // read instead of `own`, if not empty
  };

  void Count();

  const bool bf16_;
  std::vector<Block> blocks_;
  BufferPool pool_;
  uint64_t counted_bytes_ = 0;
  uint64_t max_size_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_WEIGHT_MEMORY_H_
