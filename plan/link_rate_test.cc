// SPDX-License-Identifier: Apache-2.0
#include "plan/link_rate.h"

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

}  // namespace
}  // namespace tug
