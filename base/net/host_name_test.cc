// SPDX-License-Identifier: Apache-2.0
#include "base/net/host_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(HostName, IsNotEmpty) { EXPECT_FALSE(HostName().empty()); }

TEST(WithoutBrackets, TakesThemOffAnAddressOnly) {
  EXPECT_EQ(WithoutBrackets("[::1]"), "::1");
  for (const char* host : {"::1", "127.0.0.1", "node-3", "", "[", "[]", "[::1"}) {
    EXPECT_EQ(WithoutBrackets(host), host);
  }
}

TEST(LoopbackOfName, TellsNamesThatOnlyThisHostReaches) {
  EXPECT_EQ(LoopbackOfName("127.0.1.1"), "127.0.1.1");
  for (const char* host :
       {"localhost", "127.0.0.1", "127.0.0.9", "10.0.0.7", "", "no.such.host."}) {
    EXPECT_EQ(LoopbackOfName(host), "") << host;
  }
}

TEST(NumericAddress, IsOfBothProtocols) {
  sockaddr_storage address{};
  auto& four = reinterpret_cast<sockaddr_in&>(address);
  four.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, "10.0.0.7", &four.sin_addr), 1);
  EXPECT_EQ(NumericAddress(address, sizeof(four)), "10.0.0.7");
  EXPECT_EQ(NumericAddress(address, 0), "an unknown address");
  auto& six = reinterpret_cast<sockaddr_in6&>(address);
  for (const auto& [text, numeric] : {std::pair{"::1", "::1"}, {"::ffff:10.0.0.7", "10.0.0.7"}}) {
    address = {};
    six.sin6_family = AF_INET6;
    ASSERT_EQ(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    EXPECT_EQ(NumericAddress(address, sizeof(six)), numeric);
  }
}

}  // namespace
}  // namespace tug
