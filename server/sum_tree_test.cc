#include "server/sum_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace tug {
namespace {

constexpr uint64_t kElements = 33;

std::vector<std::vector<float>> Contributions(uint32_t leaves, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<std::vector<float>> data(leaves, std::vector<float>(kElements));
  for (auto& leaf : data) {
    for (float& x : leaf) x = normal(random) * std::exp(3 * normal(random));
  }
  return data;
}

std::vector<float> Plus(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// The definition: split at the largest power of two below the width.
std::vector<float> TreeSum(const std::vector<std::vector<float>>& data, uint32_t first,
                           uint32_t count) {
  if (count == 1) return data[first];
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  return Plus(TreeSum(data, first, left), TreeSum(data, first + left, count - left));
}

std::vector<float> Sum(const SumTree& tree) { return {tree.sum().begin(), tree.sum().end()}; }

TEST(SumTree, HasTheSameBitsInEveryOrderOfArrival) {
  for (uint32_t leaves : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u}) {
    const auto data = Contributions(leaves, leaves);
    const std::vector<float> expected = TreeSum(data, 0, leaves);
    BufferPool pool;
    SumTree tree(leaves, kElements, pool);
    std::vector<uint32_t> order(leaves);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(17);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(order.begin(), order.end(), random);
      for (uint32_t leaf : order) {
        EXPECT_FALSE(tree.complete());
        tree.Add(leaf, 1, data[leaf]);
      }
      ASSERT_TRUE(tree.complete());
      EXPECT_EQ(Sum(tree), expected) << leaves << " leaves, trial " << trial;
      tree.Clear();
    }
  }
}

TEST(SumTree, TakesAlignedGroupsWithoutChangingABit) {
  for (uint32_t leaves : {2u, 3u, 6u, 8u, 11u}) {
    const auto data = Contributions(leaves, 100 + leaves);
    BufferPool pool;
    for (uint32_t group = 2; group <= 8; group *= 2) {
      SumTree tree(leaves, kElements, pool);
      for (uint32_t first = 0; first < leaves; first += group) {
        const uint32_t count = std::min(group, leaves - first);
        ASSERT_TRUE(SumTree::IsNode(leaves, first, count));
        tree.Add(first, count, TreeSum(data, first, count));
      }
      ASSERT_TRUE(tree.complete());
      EXPECT_EQ(Sum(tree), TreeSum(data, 0, leaves)) << leaves << " leaves by " << group;
    }
  }
}

TEST(SumTree, AcceptsOnlySubtreesAsGroups) {
  EXPECT_TRUE(SumTree::IsNode(6, 0, 4));
  EXPECT_TRUE(SumTree::IsNode(6, 4, 2));
  EXPECT_TRUE(SumTree::IsNode(6, 0, 6));
  EXPECT_FALSE(SumTree::IsNode(6, 1, 2));
  EXPECT_FALSE(SumTree::IsNode(6, 0, 3));
  EXPECT_FALSE(SumTree::IsNode(6, 2, 4));
  EXPECT_FALSE(SumTree::IsNode(6, 6, 1));
  EXPECT_FALSE(SumTree::IsNode(6, 0, 0));
  EXPECT_FALSE(SumTree::IsNode(6, 4, 0xffffffffu));
}

TEST(SumTree, KnowsWhatItHasAndNamesTheFirstThatIsNotFinite) {
  BufferPool pool;
  SumTree tree(3, kElements, pool);
  std::vector<float> bad(kElements, 1.0f);
  bad[32] = std::numeric_limits<float>::quiet_NaN();
  tree.Add(2, 1, bad);
  EXPECT_TRUE(tree.Covers(2, 1));
  EXPECT_FALSE(tree.Covers(0, 2));
  EXPECT_EQ(tree.first_not_finite(), 2u);
  bad[32] = std::numeric_limits<float>::infinity();
  tree.Add(1, 1, bad);
  EXPECT_EQ(tree.first_not_finite(), 1u);
  tree.Clear();
  EXPECT_FALSE(tree.Covers(2, 1));
  EXPECT_EQ(tree.first_not_finite(), SumTree::kNone);
}

}  // namespace
}  // namespace tug
