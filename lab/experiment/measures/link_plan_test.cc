// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/link_plan.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(BusiestLink, IsThatOfTheFewerKind) {
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4}), 2);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 1, .workers = 4}), 4);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 4, .workers = 2}), 1) << "a worker's own model";
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 6}), 2);
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 9}), 2);
}

TEST(BusiestLink, LeavesOutWhatStaysWithinAHost) {
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 1, .workers = 1, .hosts = 1}), 0);
  // Each of two hosts has one server and two workers. It sends pushes of its workers to the other
  // server, and weights to the other's workers.
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 2}), 2);
  // Servers on 0 and 1, workers on 2, 0, 1, 2.
  EXPECT_DOUBLE_EQ(BusiestLinkModels({.servers = 2, .workers = 4, .hosts = 3}), 2);
}

}  // namespace
}  // namespace tug
