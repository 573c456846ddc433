// SPDX-License-Identifier: Apache-2.0
#include "plan/tensor_parallel.h"

#include <gtest/gtest.h>

#include "collective/schedules/ring.h"

namespace tug {
namespace {

constexpr TransformerShape kShape = {
    .layers = 6, .width = 32, .heads = 4, .context = 16, .vocabulary = 10};

// Four all-reduces per layer, each of 2 s b h bytes, of which a ring sends 2 (t - 1) / t.
TEST(TensorParallelBytes, AreThoseOfFourAllReducesALayer) {
  EXPECT_DOUBLE_EQ(TensorParallelBytes(kShape, 2, 4, Recomputation::kSelective),
                   6 * 4 * 1.5 * (2 * 16 * 2 * 32));
  EXPECT_EQ(TensorParallelBytes(kShape, 2, 1, Recomputation::kNone), 0);
}

TEST(TensorParallelBytes, CountTheForwardPassAgainWithFullRecomputation) {
  EXPECT_DOUBLE_EQ(TensorParallelBytes(kShape, 2, 4, Recomputation::kFull),
                   1.5 * TensorParallelBytes(kShape, 2, 4, Recomputation::kNone));
}

TEST(TensorParallelSeconds, AreThoseOfTheRing) {
  const LinkCost link = {.alpha = 1e-6, .beta = 1e-11, .gamma = 0};
  EXPECT_DOUBLE_EQ(TensorParallelSeconds(kShape, 2, 4, Recomputation::kNone, link),
                   6 * 4 * RingAllReduceSeconds(link, 4, 2 * 16 * 2 * 32));
  EXPECT_EQ(TensorParallelSeconds(kShape, 2, 1, Recomputation::kNone, link), 0);
}

}  // namespace
}  // namespace tug
