// SPDX-License-Identifier: Apache-2.0
#include "collective/schedules/sum_terms.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tug {
namespace {

TEST(SumTerms, TellTreesApartButNotTheSidesOfASum) {
  SumTerms terms;
  const uint32_t a = terms.Leaf(0, 0), b = terms.Leaf(1, 0), c = terms.Leaf(2, 0);
  EXPECT_EQ(terms.Sum(a, b), terms.Sum(b, a));
  EXPECT_NE(terms.Sum(terms.Sum(a, b), c), terms.Sum(a, terms.Sum(b, c)));
  EXPECT_EQ(terms.ranks(terms.Sum(terms.Sum(a, b), c)), 7u);
}

}  // namespace
}  // namespace tug
