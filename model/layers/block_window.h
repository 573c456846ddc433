// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_MODEL_LAYERS_BLOCK_WINDOW_H_
#define TUG_MODEL_LAYERS_BLOCK_WINDOW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tug {

// Blocks whose weights a worker keeps while one block computes, if it does not keep all of them
// (placement.kind ZERO3): that block and the next `ahead` blocks in the order of use,
//
//   forward 0 .. N, backward N .. 0; and so on.
//
// So the last block is followed by those below it, in the backward pass, and block 0 by those of
// the next forward pass, which may use other weights. Forward passes of an evaluation look ahead
// only to the last block; those of training also look into the backward pass.
//
// With a tied head the last block also reads the tied block's weights: whenever it is in the
// window, so is the tied block, in addition to `ahead`. So a window has at most ahead + 1 blocks,
// or ahead + 2.
//
// Paper: Rajbhandari et al. 2020, ZeRO, section 5.3 (P_os+g+p). Not thread-safe.
class BlockWindow {
 public:
  enum class Pass { kForward, kBackward, kEvaluate };
  // A block of the window.
  struct Use {
    uint32_t block = 0;
    bool next_pass = false;  // first used by the forward pass after this backward pass

    friend bool operator==(const Use&, const Use&) = default;
  };

  // REQUIRES: blocks >= 1, tied < blocks.
  BlockWindow(uint32_t blocks, uint32_t ahead, std::optional<uint32_t> tied)
      : blocks_(blocks), ahead_(ahead), tied_(tied) {}

  // The window while `block` computes, in order of next use. Valid until the next call.
  std::span<const Use> At(Pass pass, uint32_t block);

  uint32_t blocks() const { return blocks_; }
  // Another block whose weights this block reads.
  std::optional<uint32_t> AlsoReads(uint32_t block) const {
    return block + 1 == blocks_ ? tied_ : std::nullopt;
  }

 private:
  bool Has(uint32_t block) const;
  // Adds the next use; false once there are enough.
  bool Add(uint32_t block, bool next_pass);

  uint32_t blocks_;
  uint32_t ahead_;
  std::optional<uint32_t> tied_;
  uint32_t counted_ = 0;  // entries of uses_, without a tied block added for the last one
  std::vector<Use> uses_;
};

// Bytes a worker holds of a block: its weights, and copies that the model makes when it first reads
// them.
struct BlockWeightBytes {
  uint64_t own = 0;
  uint64_t copy = 0;
};
// Peak of each during a training step: own weights of a window, and copies of its blocks that have
// been used. `blocks`: one entry per block of the model. Pure.
BlockWeightBytes MostInWindow(BlockWindow window, std::span<const BlockWeightBytes> blocks);

}  // namespace tug

#endif  // TUG_MODEL_LAYERS_BLOCK_WINDOW_H_
