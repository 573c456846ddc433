#ifndef TUG_WORKER_WEIGHT_MEMORY_H_
#define TUG_WORKER_WEIGHT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer_pool.h"
#include "base/lease.h"
#include "exchange/requests.h"
#include "model/block_window.h"
#include "model/model.h"

namespace tug {

// A worker's weights, by block: where the lanes have them, or in memory of its own, which pulls are
// written into. Without a window every block has that from the beginning, but takes none before
// something is written. With one, a block has it from Take to Drop, and what is free is used again:
// at most as many bytes as the blocks of a window (MostInWindow).
//
// Blocks that are read where the lanes have them take none; they are known beforehand (`in_place`),
// and counted if they are copied after all. Not thread-safe: owned by the compute thread.
class WeightMemory {
 public:
  // By block: bytes, and whether it is expected to be read in place. `bf16`: what they are, else
  // FP32. REQUIRES: as many blocks as the window has; no bytes are 0.
  WeightMemory(std::span<const size_t> block_bytes, std::vector<bool> in_place,
               const std::optional<BlockWindow>& window, bool bf16 = false);

  // For the block's weights; contents unspecified. REQUIRES: with a window, it was taken.
  AlignedBuffer& of(uint32_t block) { return blocks_[block].own; }
  // With a window. REQUIRES: not taken, or taken respectively, and nobody reads or writes it.
  void Take(uint32_t block);
  void Drop(uint32_t block);
  // Weights were written into it.
  void OnCopied(uint32_t block);

  // They are to be pulled: into this memory, if not in place. REQUIRES: nobody reads the ones of
  // before.
  void SetDestination(PullRequest& request);
  // They have come. `in_place` empty: into the destination.
  void OnPulled(uint32_t block, InPlaceWeights in_place);
  // Nobody reads them in place any more.
  void EndInPlace(uint32_t block) { blocks_[block].lanes = {}; }
  WeightsView ViewOf(uint32_t block);

  // The most there were at a time.
  uint64_t most_bytes() const { return most_bytes_; }

 private:
  struct Block {
    size_t size_bytes = 0;
    bool in_place = false;
    bool counted = false;  // beside the pool's
    AlignedBuffer own;
    InPlaceWeights lanes;  // what is read, if not empty
  };

  void Count();

  const bool bf16_;
  std::vector<Block> blocks_;
  BufferPool pool_;
  uint64_t counted_bytes_ = 0;
  uint64_t most_bytes_ = 0;
};

}  // namespace tug

#endif  // TUG_WORKER_WEIGHT_MEMORY_H_
