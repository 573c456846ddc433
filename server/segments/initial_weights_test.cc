// SPDX-License-Identifier: Apache-2.0
#include "server/segments/initial_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tug {
namespace {

BlockSpec Spec() {
  BlockSpec spec;
  TensorSpec* matrix = spec.add_tensors();
  matrix->add_shape(99);
  matrix->add_shape(101);
  matrix->set_init_std(0.02f);
  TensorSpec* gain = spec.add_tensors();
  gain->add_shape(7);
  gain->set_init_mean(1.0f);
  return spec;
}

std::vector<float> Fill(uint64_t seed, uint32_t block, uint64_t begin, uint64_t size) {
  std::vector<float> out(size, -9.0f);
  FillInitialWeights(Spec(), block, seed, begin, out);
  return out;
}

TEST(InitialWeights, AnyRangeHasTheBitsOfTheWhole) {
  const std::vector<float> whole = Fill(3, 1, 0, 99 * 101 + 7);
  for (uint64_t begin : {1u, 2u, 3u, 4u, 31u, 9990u}) {
    const uint64_t size = std::min<uint64_t>(17, whole.size() - begin);
    EXPECT_EQ(Fill(3, 1, begin, size),
              std::vector<float>(whole.begin() + begin, whole.begin() + begin + size));
  }
}

TEST(InitialWeights, AreNormalWithTheTensorsDeviationOrConstant) {
  const std::vector<float> whole = Fill(3, 1, 0, 99 * 101 + 7);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 99 * 101; ++i) {
    sum += whole[i];
    squares += double{whole[i]} * whole[i];
  }
  const double n = 99 * 101;
  EXPECT_NEAR(sum / n, 0, 4 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 0.02 * 4 / std::sqrt(2 * n));
  for (size_t i = 99 * 101; i < whole.size(); ++i) EXPECT_EQ(whole[i], 1.0f);
}

TEST(InitialWeights, DifferBySeedAndBlock) {
  EXPECT_NE(Fill(3, 1, 0, 50), Fill(4, 1, 0, 50));
  EXPECT_NE(Fill(3, 1, 0, 50), Fill(3, 2, 0, 50));
}

}  // namespace
}  // namespace tug
