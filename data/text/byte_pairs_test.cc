// SPDX-License-Identifier: Apache-2.0
#include "data/text/byte_pairs.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "data/text/pair_learner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using testing::ElementsAre;

// Reference implementation: one merge at a time over the whole word.
std::vector<int32_t> MergeSlowly(std::vector<int32_t> symbols, const PairRanks& ranks) {
  while (true) {
    const PairRanks::Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const PairRanks::Merge* merge = ranks.Find(symbols[i], symbols[i + 1]);
      if (merge == nullptr || (best != nullptr && merge->rank >= best->rank)) continue;
      best = merge;
      at = i;
    }
    if (best == nullptr) return symbols;
    symbols[at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(PairMerger, MergesTheLeastRankFirstAndTheLeftmostOfEqualOnes) {
  PairRanks ranks;
  EXPECT_TRUE(ranks.Add(0, 1, {1, 10}));
  EXPECT_TRUE(ranks.Add(1, 2, {0, 11}));
  EXPECT_TRUE(ranks.Add(0, 0, {2, 12}));
  EXPECT_FALSE(ranks.Add(0, 0, {3, 13}));
  PairMerger merger(ranks);
  std::vector<int32_t> word = {0, 1, 2};
  merger.Merge(word);
  EXPECT_THAT(word, ElementsAre(0, 11));
  word = {0, 0, 0};
  merger.Merge(word);
  EXPECT_THAT(word, ElementsAre(12, 0));
  word = {};
  merger.Merge(word);
  EXPECT_TRUE(word.empty());
}

TEST(PairMerger, MergesRandomWordsAsTheDefinitionDoes) {
  const uint32_t seed = 5;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    PairRanks ranks;
    for (int32_t merged = 4; merged < 20; ++merged) {
      const auto left = static_cast<int32_t>(random() % static_cast<uint32_t>(merged));
      const auto rank = static_cast<uint32_t>(random() % 8);
      ranks.Add(left, static_cast<int32_t>(random() % 4), {rank, merged});
    }
    std::vector<int32_t> word(random() % 60);
    for (int32_t& symbol : word) symbol = static_cast<int32_t>(random() % 4);
    std::vector<int32_t> merged = word;
    PairMerger(ranks).Merge(merged);
    ASSERT_EQ(merged, MergeSlowly(word, ranks)) << "round " << round;
  }
}

// Reference implementation: recounts everything for each pair.
std::vector<PairLearner::Pair> LearnSlowly(std::vector<PairLearner::Word> words, int32_t next,
                                           int pairs) {
  std::vector<PairLearner::Pair> learned;
  while (static_cast<int>(learned.size()) < pairs) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
      }
    }
    std::pair<int32_t, int32_t> best;
    int64_t best_count = 1;
    for (const auto& [pair, count] : counts) {
      if (count <= best_count) continue;
      best = pair;
      best_count = count;
    }
    if (best_count == 1) break;
    learned.push_back({best.first, best.second});
    for (auto& word : words) {
      std::vector<int32_t> out;
      for (size_t i = 0; i < word.symbols.size(); ++i) {
        const bool match = i + 1 < word.symbols.size() && word.symbols[i] == best.first &&
                           word.symbols[i + 1] == best.second;
        out.push_back(match ? next : word.symbols[i]);
        i += match;
      }
      word.symbols = out;
    }
    ++next;
  }
  return learned;
}

TEST(PairLearner, LearnsWhatCountingAgainLearns) {
  const uint32_t seed = 11;
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<PairLearner::Word> words(1 + random() % 20);
    for (auto& word : words) {
      word.count = 1 + static_cast<int64_t>(random() % 5);
      word.symbols.resize(1 + random() % 12);
      // Few symbols: overlapping pairs ("aaa") are the error-prone case.
      for (int32_t& symbol : word.symbols) symbol = static_cast<int32_t>(random() % 3);
    }
    const auto expected = LearnSlowly(words, 3, 20);
    PairLearner learner(words, {1, 1, 1}, 1000);
    for (size_t i = 0; i < expected.size(); ++i) {
      PairLearner::Pair pair;
      ASSERT_TRUE(learner.Next(pair)) << "round " << round << " pair " << i;
      ASSERT_EQ(pair.left, expected[i].left) << "round " << round << " pair " << i;
      ASSERT_EQ(pair.right, expected[i].right) << "round " << round << " pair " << i;
    }
    if (expected.size() < 20) {
      PairLearner::Pair pair;
      ASSERT_FALSE(learner.Next(pair));
    }
  }
}

TEST(PairLearner, MakesNoPairLongerThanAllowed) {
  PairLearner learner({{{0, 0, 0, 0, 0, 0, 0, 0}, 5}}, {1}, 3);
  PairLearner::Pair pair;
  ASSERT_TRUE(learner.Next(pair));  // length 2; merging two of these would exceed 3
  EXPECT_EQ(pair.left, 0);
  EXPECT_FALSE(learner.Next(pair));
}

}  // namespace
}  // namespace tug
