// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/weight_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace tug {
namespace {

const std::vector<size_t> kBlocks = {4000, 800, 800, 800, 2000};
const std::vector<bool> kNowhere(5, false);

TEST(WeightMemory, WithoutAWindowCountsBlocksOnceTheyAreCopied) {
  WeightMemory memory(kBlocks, kNowhere, std::nullopt);
  EXPECT_EQ(memory.of(0).size_bytes(), 4000u);
  EXPECT_EQ(memory.max_size_bytes(), 0u);
  memory.OnCopied(0);
  memory.OnCopied(0);
  memory.OnCopied(4);
  EXPECT_EQ(memory.max_size_bytes(), 6000u);
}

// Runs training steps: drops the blocks that left the window, then takes those that entered.
void TakeSteps(WeightMemory& memory, BlockWindow window) {
  std::set<uint32_t> taken;
  const auto move = [&](BlockWindow::Pass pass, uint32_t block) {
    std::set<uint32_t> wanted;
    for (const BlockWindow::Use& use : window.At(pass, block)) wanted.insert(use.block);
    for (const uint32_t b : taken) {
      if (!wanted.contains(b)) memory.Drop(b);
    }
    for (const uint32_t b : wanted) {
      if (!taken.contains(b)) memory.Take(b);
      ASSERT_EQ(memory.of(b).size_bytes(), kBlocks[b]);
      memory.OnCopied(b);
    }
    taken = wanted;
  };
  for (int step = 0; step < 3; ++step) {
    for (uint32_t b = 0; b < 5; ++b) move(BlockWindow::Pass::kForward, b);
    for (uint32_t b = 5; b-- > 0;) move(BlockWindow::Pass::kBackward, b);
    for (uint32_t b = 0; b < 5; ++b) move(BlockWindow::Pass::kEvaluate, b);
  }
}

TEST(WeightMemory, WithAWindowHoldsWhatTheLargestOneNeeds) {
  for (const bool tied : {false, true}) {
    for (uint32_t ahead = 0; ahead <= 6; ++ahead) {
      const BlockWindow window(5, ahead, tied ? std::optional<uint32_t>(0) : std::nullopt);
      WeightMemory memory(kBlocks, kNowhere, window);
      TakeSteps(memory, window);
      std::vector<BlockWeightBytes> bytes;
      for (const size_t own : kBlocks) bytes.push_back({.own = own});
      EXPECT_EQ(memory.max_size_bytes(), MostInWindow(window, bytes).own)
          << ahead << (tied ? " ahead, tied" : " ahead");
    }
  }
}

TEST(WeightMemory, BlocksReadInPlaceTakeNone) {
  const BlockWindow window(5, 1, std::nullopt);
  WeightMemory memory(kBlocks, {true, false, false, false, true}, window);
  memory.Take(0);
  EXPECT_EQ(memory.of(0).size_bytes(), 4000u);
  memory.Take(1);
  EXPECT_EQ(memory.max_size_bytes(), 800u);
  memory.OnCopied(0);
  EXPECT_EQ(memory.max_size_bytes(), 4800u) << "it was copied after all";
  memory.Drop(0);
  memory.Take(2);
  EXPECT_EQ(memory.max_size_bytes(), 4800u);
}

}  // namespace
}  // namespace tug
