#include "plan/pipeline_parallel.h"

#include <gtest/gtest.h>

namespace tug {
namespace {

TEST(BubbleFraction, ShrinksWithMicroBatches) {
  EXPECT_DOUBLE_EQ(BubbleFraction(1, 1), 0);
  EXPECT_DOUBLE_EQ(BubbleFraction(4, 1), 3);
  EXPECT_DOUBLE_EQ(BubbleFraction(4, 12), 0.25);
}

// The bubble beside the time that is computed in, together the step.
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

// A schedule of p stages by hand: micro-batch i leaves stage j after turn i + j + 1.
TEST(PipelineSeconds, CountsTurnsOfFillingStreamingAndDraining) {
  const TransformerShape shape = {
      .layers = 4, .width = 8, .heads = 2, .context = 16, .vocabulary = 10};
  const LinkCost link = {.alpha = 1e-5, .beta = 1e-9, .gamma = 0};
  const double message = 1e-5 + 2.0 * 16 * 3 * 8 * 1e-9;
  EXPECT_DOUBLE_EQ(PipelineSeconds(shape, 3, 4, 6, link), 2 * 9 * message);
  EXPECT_EQ(PipelineSeconds(shape, 3, 1, 6, link), 0);
}

}  // namespace
}  // namespace tug
