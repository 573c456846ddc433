#include "cli/token_picker.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

const std::vector<float> kLogits = {0.0f, 2.0f, -1.0f, 2.0f, 1.0f};

TEST(PickToken, TakesTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(PickToken(kLogits, {.temperature = 0}, 3), 1);
}

TEST(PickToken, DrawsOnlyFromTheTopK) {
  for (uint64_t position = 0; position < 1000; ++position) {
    const int32_t token = PickToken(kLogits, {.temperature = 1, .top_k = 2, .seed = 5}, position);
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
  EXPECT_EQ(PickToken(kLogits, {.temperature = 5, .top_k = 1}, 0), 1);
}

TEST(PickToken, IsAFunctionOfSeedAndPosition) {
  int different = 0;
  for (uint64_t position = 0; position < 100; ++position) {
    const PickOptions options{.temperature = 1, .top_k = 0, .seed = 7};
    const int32_t token = PickToken(kLogits, options, position);
    EXPECT_EQ(token, PickToken(kLogits, options, position));
    different += token != PickToken(kLogits, {.temperature = 1, .top_k = 0, .seed = 8}, position);
  }
  EXPECT_GT(different, 10);
}

TEST(PickToken, FollowsTheSoftmax) {
  constexpr int kDraws = 20000;
  std::vector<int> counts(kLogits.size());
  for (int i = 0; i < kDraws; ++i) {
    ++counts[PickToken(kLogits, {.temperature = 1, .top_k = 0, .seed = 1}, i)];
  }
  double total = 0;
  for (const float logit : kLogits) total += std::exp(logit);
  for (size_t i = 0; i < kLogits.size(); ++i) {
    EXPECT_NEAR(counts[i] / double{kDraws}, std::exp(kLogits[i]) / total, 0.015) << i;
  }
}

TEST(PickToken, SurvivesOneSymbol) { EXPECT_EQ(PickToken(std::vector<float>{3.0f}, {}, 0), 0); }

}  // namespace
}  // namespace tug
