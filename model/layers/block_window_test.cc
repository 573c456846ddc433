// SPDX-License-Identifier: Apache-2.0
#include "model/layers/block_window.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tug {
namespace {

using Pass = BlockWindow::Pass;

// "2 3 0'": blocks; a prime marks those of the next pass.
std::string Text(std::span<const BlockWindow::Use> uses) {
  std::string text;
  for (const BlockWindow::Use& use : uses) {
    absl::StrAppend(&text, text.empty() ? "" : " ", use.block, use.next_pass ? "'" : "");
  }
  return text;
}

TEST(BlockWindow, IsTheBlockInUseWhereNothingIsAskedForAhead) {
  BlockWindow window(4, 0, std::nullopt);
  for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kEvaluate}) {
    for (uint32_t block = 0; block < 4; ++block) {
      EXPECT_EQ(Text(window.At(pass, block)), absl::StrCat(block));
    }
  }
}

TEST(BlockWindow, FollowsTheOrderOfUsesForwardBackwardAndIntoTheNextPass) {
  BlockWindow window(4, 2, std::nullopt);
  EXPECT_EQ(Text(window.At(Pass::kForward, 0)), "0 1 2");
  EXPECT_EQ(Text(window.At(Pass::kForward, 2)), "2 3 1");
  EXPECT_EQ(Text(window.At(Pass::kForward, 3)), "3 2 1");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 3)), "3 2 1");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 1)), "1 0 2'");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 0)), "0 1' 2'");
  EXPECT_EQ(Text(window.At(Pass::kEvaluate, 1)), "1 2 3");
  EXPECT_EQ(Text(window.At(Pass::kEvaluate, 3)), "3");
}

TEST(BlockWindow, IsAllBlocksWhereItIsLargeEnough) {
  BlockWindow window(3, 100, std::nullopt);
  EXPECT_EQ(Text(window.At(Pass::kForward, 1)), "1 2 0");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 1)), "1 0 2'");
}

TEST(BlockWindow, HasTheTiedBlockBesideTheLast) {
  BlockWindow window(4, 1, 0);
  EXPECT_EQ(window.AlsoReads(3), 0u);
  EXPECT_EQ(window.AlsoReads(2), std::nullopt);
  EXPECT_EQ(Text(window.At(Pass::kForward, 1)), "1 2");
  EXPECT_EQ(Text(window.At(Pass::kForward, 2)), "2 3 0");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 3)), "3 0 2");
  EXPECT_EQ(Text(window.At(Pass::kBackward, 2)), "2 1");
  EXPECT_EQ(Text(window.At(Pass::kEvaluate, 3)), "3 0");
  BlockWindow alone(1, 2, 0);
  EXPECT_EQ(Text(alone.At(Pass::kForward, 0)), "0");
}

TEST(MostInWindow, CountsTheLargestWindowAndCopiesOfWhatWasUsed) {
  const std::vector<BlockWeightBytes> blocks = {
      {1000, 0}, {10, 20}, {10, 20}, {10, 20}, {500, 900}};
  const auto most = [&](uint32_t ahead, std::optional<uint32_t> tied) {
    return MostInWindow(BlockWindow(5, ahead, tied), blocks);
  };
  EXPECT_EQ(most(0, std::nullopt).own, 1000u);
  EXPECT_EQ(most(0, std::nullopt).copy, 900u);
  EXPECT_EQ(most(1, std::nullopt).own, 1010u);
  EXPECT_EQ(most(1, std::nullopt).copy, 920u) << "the layer below has just been used";
  EXPECT_EQ(most(100, std::nullopt).own, 1530u);
  EXPECT_EQ(most(100, std::nullopt).copy, 960u);
  EXPECT_EQ(most(0, 0).own, 1500u);
}

}  // namespace
}  // namespace tug
