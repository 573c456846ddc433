// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/gradient_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tug {
namespace {

OptimizerConfig Clip(OptimizerConfig::Clip clip) {
  OptimizerConfig config;
  config.set_clip(clip);
  config.set_clip_norm(2.0);
  return config;
}

// Norms 10 and 5; over 5 tokens 2 and 1, together the root of 5.
void AddTwoBlocks(GradientClip& clip) {
  clip.Add(0, std::vector<float>{6, 8});
  clip.Add(1, std::vector<float>{3, 0, 4});
}

TEST(GradientClip, ScalesABlockThatIsTooLong) {
  GradientClip clip(Clip(OptimizerConfig::PER_BLOCK), 2);
  AddTwoBlocks(clip);
  EXPECT_FALSE(clip.global());
  EXPECT_NEAR(*clip.Factor(0, 5), 1.0f, 1e-6);
  EXPECT_NEAR(*clip.Factor(0, 4), 0.8f, 1e-6);
  EXPECT_EQ(*clip.Factor(1, 4), 1.0f);
}

TEST(GradientClip, ScalesAllBlocksByTheirNormTogether) {
  GradientClip clip(Clip(OptimizerConfig::GLOBAL), 2);
  AddTwoBlocks(clip);
  EXPECT_TRUE(clip.global());
  EXPECT_NEAR(*clip.Factor(0, 5), 2 / std::sqrt(5.0), 1e-6);
  EXPECT_EQ(clip.Factor(1, 5), clip.Factor(0, 5));
}

TEST(GradientClip, LeavesGradientsAsTheyAreWhereItIsOff) {
  GradientClip clip(Clip(OptimizerConfig::OFF), 2);
  AddTwoBlocks(clip);
  EXPECT_EQ(*clip.Factor(0, 1), 1.0f);
}

TEST(GradientClip, HasNoFactorForWhatIsNotFinite) {
  for (auto scope : {OptimizerConfig::OFF, OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    GradientClip clip(Clip(scope), 2);
    AddTwoBlocks(clip);
    clip.Add(0, std::vector<float>{1, std::numeric_limits<float>::infinity()});
    EXPECT_FALSE(clip.Factor(0, 5).has_value());
    EXPECT_EQ(clip.Factor(1, 5).has_value(), scope != OptimizerConfig::GLOBAL);
    clip.Add(0, std::vector<float>{1, 1});  // the next step
    EXPECT_TRUE(clip.Factor(0, 5).has_value());
  }
}

// Finite elements of the block become NaN too.
TEST(GradientClip, MakesAllOfABlockNaNThatIsNotFinite) {
  const std::vector<float> blown_up = {1, 2, std::numeric_limits<float>::infinity(), 4};
  for (auto scope : {OptimizerConfig::PER_BLOCK, OptimizerConfig::GLOBAL}) {
    GradientClip clip(Clip(scope), 2);
    std::vector<float> block = blown_up, other = {3, 0, 4};
    clip.Add(0, block);
    clip.Add(1, other);
    EXPECT_FALSE(clip.Apply(0, 1, block));
    for (const float element : block) EXPECT_TRUE(std::isnan(element));
    EXPECT_EQ(clip.Apply(1, 1, other), scope == OptimizerConfig::PER_BLOCK);
    for (const float element : other) {
      EXPECT_EQ(std::isnan(element), scope == OptimizerConfig::GLOBAL);
    }
  }
  GradientClip off(Clip(OptimizerConfig::OFF), 1);
  std::vector<float> block = blown_up;
  off.Add(0, block);
  EXPECT_TRUE(off.Apply(0, 1, block));
  EXPECT_EQ(block, blown_up);
}

TEST(GradientClip, AppliesItsFactor) {
  GradientClip clip(Clip(OptimizerConfig::PER_BLOCK), 2);
  AddTwoBlocks(clip);
  std::vector<float> block = {6, 8}, shorter = {3, 0, 4};
  EXPECT_TRUE(clip.Apply(0, 4, block));
  EXPECT_NEAR(block[0], 4.8f, 1e-5);
  EXPECT_NEAR(block[1], 6.4f, 1e-5);
  EXPECT_TRUE(clip.Apply(1, 4, shorter));
  EXPECT_EQ(shorter, (std::vector<float>{3, 0, 4}));
}

}  // namespace
}  // namespace tug
