// SPDX-License-Identifier: Apache-2.0
#include "lab/bench/link_measurement.h"

#include <iterator>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(CallsIn, FillsTheRunWithOneCallAtLeast) {
  EXPECT_EQ(CallsIn(0.1, 0.01), 10u);
  EXPECT_EQ(CallsIn(0.1, 3), 1u);
  EXPECT_EQ(CallsIn(10, 1e-9), 10000u);
}

TEST(MeasureLink, FitsTheMediansOfAllSizes) {
  CollectiveSetting setting;
  setting.shared_memory = true;
  setting.max_size_bytes = uint64_t{16} << 20;
  CollectiveRanks ranks;
  ASSERT_TRUE(ranks.Start(setting).ok());
  const auto measured = MeasureLink(ranks, 0.001, 3);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_EQ(measured->messages.size(), std::size(kLinkBytes));
  for (size_t i = 0; i < measured->messages.size(); ++i) {
    EXPECT_EQ(measured->messages[i].bytes, kLinkBytes[i]);
    EXPECT_GT(measured->messages[i].seconds, 0);
  }
  const LinkCost fitted = FitLink(measured->messages);
  EXPECT_EQ(measured->cost.alpha, fitted.alpha);
  EXPECT_EQ(measured->cost.beta, fitted.beta);
  EXPECT_GT(measured->cost.gamma, 0);
}

}  // namespace
}  // namespace tug
