// SPDX-License-Identifier: Apache-2.0
#include "plan/model_shape.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

constexpr TransformerShape kGpt3 = {
    .layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocabulary = 50257};

TEST(LecturesParameters, CountsEmbeddingMatricesAndBiasesOfTheMlp) {
  EXPECT_EQ(LecturesParameters(kGpt3),
            50257u * 12288 + 96u * (12u * uint64_t{12288} * 12288 + 5u * 12288));
  EXPECT_NEAR(static_cast<double>(LecturesParameters(kGpt3)), 175e9, 0.005 * 175e9);
}

TEST(DecoderParameters, CountsWhatTheModelHas) {
  const uint64_t h = kGpt3.width;
  EXPECT_EQ(DecoderParameters(kGpt3), 50257 * h + 2048 * h + 96 * (12 * h * h + 13 * h) + 2 * h);
  // GPT-2 small, as published.
  EXPECT_EQ(DecoderParameters(
                {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257}),
            124439808u);
}

TEST(LayerOutputBytes, AreTwoForEachElement) {
  EXPECT_DOUBLE_EQ(LayerOutputBytes(kGpt3, 1.5), 2.0 * 2048 * 1.5 * 12288);
}

}  // namespace
}  // namespace tug
