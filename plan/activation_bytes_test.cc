// SPDX-License-Identifier: Apache-2.0
#include "plan/activation_bytes.h"

#include <gtest/gtest.h>

#include "model/transformer/memory.h"

namespace tug {
namespace {

constexpr TransformerShape kGpt3 = {
    .layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257};

// 34 s b h + 5 a s^2 b per layer, 96 layers.
TEST(ActivationBytes, AreTheLecturesWithoutRecomputation) {
  const double layer = 34.0 * 2048 * 12288 + 5.0 * 96 * 2048 * 2048;
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 1, false, Recomputation::kNone), 96 * layer);
  // The lectures' batch of 3.2 million tokens.
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 3.2e6 / 2048, 1, false, Recomputation::kNone),
                   1562.5 * 96 * layer);
}

TEST(ActivationBytes, LeaveOutTheSquareOfTheContextWhenSelective) {
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 2, 1, false, Recomputation::kSelective),
                   96 * 34.0 * 2048 * 2 * 12288);
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 2, 1, false, Recomputation::kFull),
                   96 * 2.0 * 2048 * 2 * 12288);
}

// Korthikanti et al. 2022, table 2: only 24 of 34 s b h are divided.
TEST(ActivationBytes, AreDividedByTensorParallelismInPart) {
  const double sbh = 2048.0 * 12288;
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 8, false, Recomputation::kNone),
                   96 * sbh * (10 + 24.0 / 8 + 5.0 * 96 * 2048 / 12288 / 8));
  EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 8, false, Recomputation::kSelective), 96 * sbh * 13);
}

// Korthikanti et al. 2022, table 2: with sequence parallelism everything is divided.
TEST(ActivationBytes, AreDividedByTensorAndSequenceParallelism) {
  for (const Recomputation recomputation :
       {Recomputation::kNone, Recomputation::kSelective, Recomputation::kFull}) {
    EXPECT_DOUBLE_EQ(ActivationBytes(kGpt3, 1, 8, true, recomputation),
                     ActivationBytes(kGpt3, 1, 1, false, recomputation) / 8);
  }
}

TEST(ActivationBytes, AgreeWithWhatTheModelComparesItselfTo) {
  ModelOptions options;
  options.config.set_layers(96);
  options.config.set_width(12288);
  options.config.set_heads(96);
  options.config.set_context(2048);
  options.max_micro_batch = 3;
  EXPECT_EQ(ActivationBytes(kGpt3, 3, 1, false, Recomputation::kNone),
            static_cast<double>(LecturesActivationBytes(options)));
}

}  // namespace
}  // namespace tug
