#include "plan/activation_bytes.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

constexpr TransformerShape kGpt3 = {
    .layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257};

// 34 s b h + 5 a s^2 b, of 96 layers.
TEST(ActivationBytes, AreTheLecturesWithoutRecomputation) {
  const double layer = 34.0 * 2048 * 12288 + 5.0 * 96 * 2048 * 2048;
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 1, Recomputation::kNone), 96 * layer);
  // The lectures' batch of 3.2 million tokens.
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 3.2e6 / 2048, 1, Recomputation::kNone),
                   1562.5 * 96 * layer);
}

TEST(ActivationBytes, LeaveOutTheSquareOfTheContextWhenSelective) {
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 2, 1, Recomputation::kSelective),
                   96 * 34.0 * 2048 * 2 * 12288);
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 2, 1, Recomputation::kFull), 96 * 2.0 * 2048 * 2 * 12288);
}

// Korthikanti et al. 2022, table 2: only 24 of 34 s b h are divided.
TEST(ActivationBytes, AreDividedByTensorParallelismInPart) {
  const double sbh = 2048.0 * 12288;
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 8, Recomputation::kNone),
                   96 * sbh * (10 + 24.0 / 8 + 5.0 * 96 * 2048 / 12288 / 8));
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 8, Recomputation::kSelective), 96 * sbh * 13);
}

}  // namespace
}  // namespace tug
