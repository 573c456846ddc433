// SPDX-License-Identifier: Apache-2.0
#include "collective/network/link_fit.h"

#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

std::vector<TimedMessage> Timed(double alpha, double beta, double long_factor = 1) {
  std::vector<TimedMessage> messages;
  for (const uint64_t bytes : {1024, 65536, 1048576, 8388608}) {
    const double factor = bytes > 1000000 ? long_factor : 1;
    messages.push_back({bytes, factor * (alpha + static_cast<double>(bytes) * beta)});
  }
  return messages;
}

TEST(FitLink, FindsTheLineThatTheTimesLieOn) {
  const LinkCost cost = FitLink(Timed(20e-6, 1e-9));
  EXPECT_NEAR(cost.alpha, 20e-6, 1e-12);
  EXPECT_NEAR(cost.beta, 1e-9, 1e-16);
  EXPECT_EQ(cost.gamma, 0);
}

TEST(FitLink, ShortMessagesCountAsMuchAsLongOnes) {
  const LinkCost cost = FitLink(Timed(20e-6, 1e-9, 1.3));
  EXPECT_NEAR(cost.alpha, 20e-6, 4e-6);
}

TEST(FitLink, NeitherIsNegative) {
  const std::vector<TimedMessage> steep = {{1000, 1e-6}, {2000, 4e-6}};
  EXPECT_EQ(FitLink(steep).alpha, 0);
  EXPECT_GT(FitLink(steep).beta, 0);
  const std::vector<TimedMessage> falling = {{1000, 4e-6}, {2000, 1e-6}};
  EXPECT_EQ(FitLink(falling).beta, 0);
  EXPECT_GT(FitLink(falling).alpha, 0);
}

}  // namespace
}  // namespace tug
