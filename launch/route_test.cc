// SPDX-License-Identifier: Apache-2.0
#include "launch/route.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AddressToward, IsThatOfTheRoute) {
  EXPECT_EQ(AddressToward({"127.0.0.1"}, {}).value(), "127.0.0.1");
  EXPECT_EQ(AddressToward({"127.0.0.1"}, {"lo"}).value(), "127.0.0.1");
}

TEST(AddressToward, LooksUpNoName) {
  EXPECT_EQ(AddressToward({"localhost"}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// Loopback does not show the route to others, so the entry that is not an address is tried.
TEST(AddressToward, PrefersAPeerThatIsNotOfLoopback) {
  EXPECT_EQ(AddressToward({"127.0.0.1", "127.0.0.2"}, {}).value(), "127.0.0.1");
  const absl::Status status = AddressToward({"127.0.0.1", "localhost"}, {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("'localhost'"));
}

TEST(AddressToward, IsOfIpVersion4) {
  EXPECT_EQ(AddressToward({"::1"}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AddressToward, NamesTheInterfacesThatThereAre) {
  const absl::Status status = AddressToward({"127.0.0.1"}, {"no-such-0"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("no-such-0"), HasSubstr("lo")));
}

TEST(AddressToward, NeedsAPeer) {
  EXPECT_EQ(AddressToward({}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LoopbackWarning, IsOfANameThatOnlyThisHostReaches) {
  EXPECT_THAT(
      LoopbackWarning("127.0.1.1", "the server"),
      AllOf(HasSubstr("127.0.1.1 resolves to 127.0.1.1 on this host"),
            HasSubstr("cannot reach the server"), HasSubstr("--listen"), HasSubstr("--interface")));
  for (const char* host : {"localhost", "127.0.0.1", "10.0.0.7", "no.such.host."}) {
    EXPECT_EQ(LoopbackWarning(host, "the server"), "") << host;
  }
}

}  // namespace
}  // namespace tug
