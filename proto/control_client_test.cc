#include "proto/control_client.h"

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

TEST(ParseHostPort, SplitsAtTheLastColon) {
  const auto address = ParseHostPort("[::1]:7070");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "[::1]");
  EXPECT_EQ(address->port, 7070);
}

TEST(ParseHostPort, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "host", ":1", "host:", "host:x", "host:70000", "host:-1", "h:1x"}) {
    EXPECT_EQ(ParseHostPort(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ControlClient, SaysWhatToDoWhenNobodyListens) {
  const absl::Time begin = absl::Now();
  // Port 1 (tcpmux) needs root to listen on and is not used.
  const auto client = ControlClient::Connect("127.0.0.1:1", absl::Milliseconds(300));
  ASSERT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  const std::string message(client.status().message());
  EXPECT_TRUE(absl::StrContains(message, "cannot reach the coordinator at 127.0.0.1:1")) << message;
  EXPECT_TRUE(absl::StrContains(message, "tug coordinator JOB --listen")) << message;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

}  // namespace
}  // namespace tug
