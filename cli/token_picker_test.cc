// SPDX-License-Identifier: Apache-2.0
#include "cli/token_picker.h"

#include <cmath>
#include <random>
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

// Logits of a random distribution with many ties.
std::vector<float> SomeLogits(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> logits(50);
  for (float& logit : logits) logit = static_cast<float>(random() % 8) / 2.0f;
  return logits;
}

double SumOf(const std::vector<Candidate>& candidates, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += candidates[i].probability;
  return sum;
}

TEST(CandidatesOf, TopPKeepsTheFewestWhoseProbabilityReachesIt) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto logits = SomeLogits(seed);
    for (const double temperature : {0.5, 1.0, 2.0}) {
      PickOptions options{.temperature = temperature, .top_k = 0};
      const auto all = CandidatesOf(logits, options);
      ASSERT_EQ(all.size(), logits.size());
      for (const double top_p : {0.01, 0.3, 0.5, 0.9, 0.999}) {
        options.top_p = top_p;
        const auto kept = CandidatesOf(logits, options);
        ASSERT_GE(kept.size(), 1u);
        EXPECT_GE(SumOf(all, kept.size()), top_p - 1e-12);
        EXPECT_LT(SumOf(all, kept.size() - 1), top_p + 1e-12);
        EXPECT_NEAR(SumOf(kept, kept.size()), 1.0, 1e-12);
        for (size_t i = 0; i < kept.size(); ++i) {
          EXPECT_EQ(kept[i].token, all[i].token);
          EXPECT_NEAR(kept[i].probability / kept[0].probability,
                      all[i].probability / all[0].probability, 1e-12);
        }
      }
    }
  }
}

TEST(CandidatesOf, TopPOfOneKeepsAllAndOfZeroTheLikeliest) {
  const auto logits = SomeLogits(3);
  EXPECT_EQ(CandidatesOf(logits, {.temperature = 0.01, .top_k = 0, .top_p = 1}).size(), 50u);
  const auto one = CandidatesOf(logits, {.temperature = 1, .top_k = 0, .top_p = 0});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].token, PickToken(logits, {.temperature = 0}, 0));
}

TEST(CandidatesOf, PutsSmallerOfEquallyLikelyTokensFirst) {
  const std::vector<float> equal(8, 0.5f);
  const auto kept = CandidatesOf(equal, {.temperature = 1, .top_k = 0, .top_p = 0.5});
  ASSERT_EQ(kept.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(kept[i].token, i);
}

TEST(CandidatesOf, TopPIsOfTheTopK) {
  const std::vector<float> equal(8, 0.5f);
  EXPECT_EQ(CandidatesOf(equal, {.temperature = 1, .top_k = 4, .top_p = 0.5}).size(), 2u);
}

TEST(PickToken, DrawsOnlyFromTheTopP) {
  for (uint64_t position = 0; position < 1000; ++position) {
    const PickOptions options{.temperature = 1, .top_k = 0, .top_p = 0.6, .seed = 5};
    const int32_t token = PickToken(kLogits, options, position);
    EXPECT_TRUE(token == 1 || token == 3) << token;  // probability 0.40 each
  }
}

TEST(PickToken, SurvivesOneSymbol) { EXPECT_EQ(PickToken(std::vector<float>{3.0f}, {}, 0), 0); }

}  // namespace
}  // namespace tug
