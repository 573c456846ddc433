// SPDX-License-Identifier: Apache-2.0
#include "plan/pipeline_parallel.h"

#include <gtest/gtest.h>

#include <set>

namespace tug {
namespace {

TEST(BubbleFraction, ShrinksWithMicroBatches) {
  EXPECT_DOUBLE_EQ(BubbleFraction(1, 1), 0);
  EXPECT_DOUBLE_EQ(BubbleFraction(4, 1), 3);
  EXPECT_DOUBLE_EQ(BubbleFraction(4, 12), 0.25);
}

// The step is the bubble plus the compute time.
TEST(IdleShare, IsTheBubblesPartOfTheStep) {
  for (const uint32_t p : {1, 2, 7}) {
    for (const uint64_t m : {1, 5, 64}) {
      const double bubble = BubbleFraction(p, m);
      EXPECT_DOUBLE_EQ(IdleShare(p, m), bubble / (1 + bubble));
    }
  }
}

TEST(MicroBatchesHeld, AreNoMoreThanStages) {
  EXPECT_EQ(MicroBatchesHeld(4, 64), 4u);
  EXPECT_EQ(MicroBatchesHeld(4, 3), 3u);
}

// Counts turns in which stage j has micro-batch i and passes it on afterwards.
TEST(PipelineSeconds, CountsTheTurnsThatPassSomethingOn) {
  const TransformerShape shape = {
      .layers = 4, .width = 8, .heads = 2, .context = 16, .vocabulary = 10};
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  const double message = 1e-5 + 2.0 * 16 * 3 * 8 * 1e-9;
  for (const uint32_t stages : {1, 2, 4, 7}) {
    for (const uint64_t micro_batches : {1, 2, 6, 9}) {
      std::set<uint64_t> computing, passing;
      for (uint64_t i = 0; i < micro_batches; ++i) {
        for (uint32_t j = 0; j < stages; ++j) {
          computing.insert(i + j);
          if (j + 1 < stages) passing.insert(i + j);
        }
      }
      EXPECT_EQ(PipelineTurns(stages, micro_batches), computing.size());
      EXPECT_DOUBLE_EQ(PipelineSeconds(shape, 3, stages, micro_batches, link),
                       2 * static_cast<double>(passing.size()) * message);
    }
  }
}

}  // namespace
}  // namespace tug
