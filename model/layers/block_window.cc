// SPDX-License-Identifier: Apache-2.0
#include "model/layers/block_window.h"

#include <algorithm>

#include "base/check.h"

namespace tug {

bool BlockWindow::Has(uint32_t block) const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [&](const Use& use) { return use.block == block; });
}

bool BlockWindow::Add(uint32_t block, bool next_pass) {
  if (counted_ > ahead_) return false;
  ++counted_;
  if (!Has(block)) uses_.push_back({block, next_pass});
  const std::optional<uint32_t> also = AlsoReads(block);
  if (also.has_value() && !Has(*also)) uses_.push_back({*also, next_pass});
  return true;
}

std::span<const BlockWindow::Use> BlockWindow::At(Pass pass, uint32_t block) {
  TUG_CHECK_LT(block, blocks_);
  uses_.clear();
  counted_ = 0;
  if (pass == Pass::kBackward) {
    for (uint32_t b = block + 1; b-- > 0 && Add(b, false);) {
    }
    for (uint32_t b = block + 1; b < blocks_ && Add(b, true); ++b) {
    }
    return uses_;
  }
  for (uint32_t b = block; b < blocks_ && Add(b, false); ++b) {
  }
  if (pass == Pass::kEvaluate) return uses_;
  for (uint32_t b = block; b-- > 0 && Add(b, false);) {
  }
  return uses_;
}

BlockWeightBytes MostInWindow(BlockWindow window, std::span<const BlockWeightBytes> blocks) {
  const auto count = static_cast<uint32_t>(blocks.size());
  TUG_CHECK_EQ(count, window.blocks());
  std::vector<bool> read(count, false);  // since it entered the window
  BlockWeightBytes most;
  const auto use = [&](BlockWindow::Pass pass, uint32_t block) {
    BlockWeightBytes now;
    std::vector<bool> kept(count, false);
    for (const BlockWindow::Use& each : window.At(pass, block)) {
      now.own += blocks[each.block].own;
      kept[each.block] = !each.next_pass && read[each.block];
    }
    read = std::move(kept);
    read[block] = true;
    if (const std::optional<uint32_t> also = window.AlsoReads(block)) read[*also] = true;
    for (uint32_t b = 0; b < count; ++b) now.copy += read[b] ? blocks[b].copy : 0;
    most.own = std::max(most.own, now.own);
    most.copy = std::max(most.copy, now.copy);
  };
  for (uint32_t block = 0; block < count; ++block) use(BlockWindow::Pass::kForward, block);
  for (uint32_t block = count; block-- > 0;) use(BlockWindow::Pass::kBackward, block);
  return most;
}

}  // namespace tug
