// SPDX-License-Identifier: Apache-2.0
#include "experiment/measures/link_plan.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(LinkRate, IsReadAsTheTestbedReadsIt) {
  EXPECT_EQ(ParseLinkRate("200mbit").value(), 2e8);
  EXPECT_EQ(ParseLinkRate("1gbit").value(), 1e9);
  EXPECT_EQ(ParseLinkRate("64kbit").value(), 64e3);
  EXPECT_EQ(ParseLinkRate("9bit").value(), 9);
  for (const char* wrong : {"", "200", "mbit", "0mbit", "-1mbit", "1.5gbit", "1 gbit", "fast",
                            "1234567mbit", "+1mbit"}) {
    EXPECT_FALSE(ParseLinkRate(wrong).ok()) << wrong;
  }
}

TEST(LinkRate, LeavesRoomForHeaders) { EXPECT_NEAR(PayloadBytesPerSecond(1e9), 119.55e6, 0.01e6); }

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
