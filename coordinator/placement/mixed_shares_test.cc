// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/mixed_shares.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using Hosts = std::vector<uint64_t>;

TEST(MixedShares, AreThoseOfThePaper) {
  for (uint32_t n = 2; n <= 16; ++n) {
    for (uint32_t k = 1; k < n; ++k) {
      const HostShares shares = MixedShares(n, n, k);
      const double all = n * shares.beside + k * shares.own;
      const double divisor = n * n + k * n - 2.0 * k;
      EXPECT_DOUBLE_EQ(shares.beside / all, (n - k) / divisor) << n << " " << k;
      EXPECT_DOUBLE_EQ(shares.own / all, 2 * (n - 1) / divisor) << n << " " << k;
    }
  }
}

TEST(MixedShares, MakeAllLinksThatServersHaveEquallyBusy) {
  for (uint32_t n = 2; n <= 12; ++n) {
    for (uint32_t b = 1; b <= n; ++b) {
      for (uint32_t k = 1; k <= n; ++k) {
        const HostShares shares = MixedShares(n, b, k);
        const double all = b * shares.beside + k * shares.own;
        const double x = shares.beside / all, y = shares.own / all;
        EXPECT_NEAR(1 + (n - 2.0) * x, n * y, 1e-12) << n << " " << b << " " << k;
      }
    }
  }
}

TEST(MixedShares, AtTheEdgesOneKindHasAll) {
  EXPECT_EQ(MixedShares(4, 4, 4).beside, 0u) << "as many hosts of servers alone as of workers";
  EXPECT_EQ(MixedShares(4, 4, 9).beside, 0u);
  EXPECT_GT(MixedShares(4, 4, 9).own, 0u);
  for (const uint32_t k : {1u, 2u}) {
    EXPECT_EQ(MixedShares(1, 1, k).own, 0u) << "nothing crosses the link of the only worker";
    EXPECT_GT(MixedShares(1, 1, k).beside, 0u);
  }
  EXPECT_GT(MixedShares(3, 3, 0).beside, 0u);
  EXPECT_GT(MixedShares(3, 0, 2).own, 0u);
}

TEST(MixedWeights, FollowHosts) {
  // n = 3, k = 2: (n - k) to 2 (n - 1).
  EXPECT_THAT(MixedWeights(Hosts{11, 21, 12, 22, 13}, Hosts{11, 12, 13}),
              ElementsAre(1, 4, 1, 4, 1));
  // Two servers on a host divide its share.
  EXPECT_THAT(MixedWeights(Hosts{11, 21, 12, 21, 22, 13}, Hosts{11, 12, 13}),
              ElementsAre(1, 2, 1, 2, 4, 1));
  // n = 4, b = 2, k = 1: 3 to 4.
  EXPECT_THAT(MixedWeights(Hosts{11, 12, 21}, Hosts{11, 12, 13, 14}), ElementsAre(3, 3, 4));
}

TEST(MixedWeights, AreEqualWhereAllServersAreOfOneKind) {
  EXPECT_THAT(MixedWeights(Hosts{11, 11, 11}, Hosts{11, 11}), ElementsAre(1, 1, 1))
      << "a job on one machine";
  EXPECT_THAT(MixedWeights(Hosts{21, 22}, Hosts{11, 12}), ElementsAre(1, 1));
  EXPECT_THAT(MixedWeights(Hosts{0, 0, 0}, Hosts{0, 0}), ElementsAre(1, 1, 1)) << "not known";
}

}  // namespace
}  // namespace tug
