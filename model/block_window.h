#ifndef TUG_MODEL_BLOCK_WINDOW_H_
#define TUG_MODEL_BLOCK_WINDOW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tug {

// Which blocks' weights a worker has while one of them computes, where it does not keep all of them
// (placement.kind ZERO3): that one and the `ahead` blocks that are used next. Uses come in the
// order
//
//   forward 0 .. N, backward N .. 0; and so on
//
// so behind the last block come those before it, in the backward pass; and behind block 0 those of
// the next forward pass, which may be of other weights. An evaluation's forward passes look ahead
// to the last block only, as do those of training where nothing else is left.
//
// With a tied head the last block reads the tied block's weights too: wherever it is in the window,
// so is that, beyond `ahead`. So there are at most ahead + 1 blocks, or ahead + 2.
//
// Paper: Rajbhandari et al. 2020, ZeRO, section 5.3 (P_os+g+p). Not thread-safe.
class BlockWindow {
 public:
  enum class Pass { kForward, kBackward, kEvaluate };
  // A block of the window.
  struct Use {
    uint32_t block = 0;
    bool next_pass = false;  // first used by a forward pass that follows the backward pass

    friend bool operator==(const Use&, const Use&) = default;
  };

  // REQUIRES: blocks >= 1, tied < blocks.
  BlockWindow(uint32_t blocks, uint32_t ahead, std::optional<uint32_t> tied)
      : blocks_(blocks), ahead_(ahead), tied_(tied) {}

  // While `block` computes, in the order of their next use. Valid until the next call.
  std::span<const Use> At(Pass pass, uint32_t block);

  uint32_t blocks() const { return blocks_; }
  // Another block whose weights this one reads.
  std::optional<uint32_t> AlsoReads(uint32_t block) const {
    return block + 1 == blocks_ ? tied_ : std::nullopt;
  }

 private:
  bool Has(uint32_t block) const;
  // The next use; false once there are enough.
  bool Add(uint32_t block, bool next_pass);

  uint32_t blocks_;
  uint32_t ahead_;
  std::optional<uint32_t> tied_;
  uint32_t counted_ = 0;  // of uses_, but for a tied block that is there beside
  std::vector<Use> uses_;
};

// Sizes of what a worker holds of each block: its weights, and copies that the model makes of them
// when it first reads them.
struct BlockWeightBytes {
  uint64_t own = 0;
  uint64_t copy = 0;
};
// The most of each at a time, in a step of training: own weights of a window, copies of those of
// its blocks that have been used. `blocks`: as many as the window has. Pure.
BlockWeightBytes MostInWindow(BlockWindow window, std::span<const BlockWeightBytes> blocks);

}  // namespace tug

#endif  // TUG_MODEL_BLOCK_WINDOW_H_
