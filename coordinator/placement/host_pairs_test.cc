// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/host_pairs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using Nodes = std::vector<HostedNode>;

TEST(PairHosts, TakesTheServerOfTheSameHost) {
  const Nodes workers = {{5, 70}, {6, 60}, {7, 80}};
  const Nodes servers = {{1, 60}, {2, 70}, {3, 80}};
  EXPECT_THAT(PairHosts(workers, servers), ElementsAre(2, 1, 3));
}

TEST(PairHosts, GoesByTheOrderOfIdsOnOneHost) {
  const Nodes workers = {{2, 60}, {4, 60}, {6, 60}};
  const Nodes servers = {{1, 60}, {3, 60}, {5, 60}};
  EXPECT_THAT(PairHosts(workers, servers), ElementsAre(1, 3, 5));
}

TEST(PairHosts, PairsWhatIsLeftOverInOrderWithoutTakingAServerTwice) {
  const Nodes workers = {{10, 1}, {11, 2}, {12, 2}, {13, 3}};
  const Nodes servers = {{20, 2}, {21, 4}, {22, 3}, {23, 4}};
  EXPECT_THAT(PairHosts(workers, servers), ElementsAre(21, 20, 23, 22));
}

TEST(PairHosts, AnUnknownHostIsNobodyElses) {
  const Nodes workers = {{1, 0}, {2, 9}};
  const Nodes servers = {{3, 9}, {4, 0}};
  EXPECT_THAT(PairHosts(workers, servers), ElementsAre(4, 3));
}

}  // namespace
}  // namespace tug
