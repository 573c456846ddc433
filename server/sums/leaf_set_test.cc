// SPDX-License-Identifier: Apache-2.0
#include "server/sums/leaf_set.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(LeafSet, IsASetOfAnySizeOverWordsAndAcrossThem) {
  std::mt19937 random(7);
  for (const uint32_t leaves : {1u, 2u, 63u, 64u, 65u, 128u, 129u, 4096u}) {
    LeafSet set(leaves);
    std::vector<bool> expected(leaves);
    for (int round = 0; round < 200; ++round) {
      const uint32_t first = random() % leaves;
      const uint32_t count = random() % (leaves - first + 1);
      const auto begin = expected.begin() + first;
      const auto had = static_cast<uint32_t>(std::count(begin, begin + count, true));
      ASSERT_EQ(set.Count(first, count), had) << leaves << ": " << first << " + " << count;
      ASSERT_EQ(set.HasAny(first, count), had > 0) << leaves << ": " << first << " + " << count;
      if (round % 5 == 0) {
        set.Add(first, count);
        std::fill_n(begin, count, true);
      }
      if (round % 50 == 49) {
        set.Clear();
        expected.assign(leaves, false);
      }
    }
  }
}

}  // namespace
}  // namespace tug
