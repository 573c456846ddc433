// SPDX-License-Identifier: Apache-2.0
#include "control/control_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file_descriptor.h"
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
  // Port 1 (tcpmux) is unused, and listening on it needs root.
  const auto client = ControlClient::Connect("127.0.0.1:1", absl::Milliseconds(300));
  ASSERT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  const std::string message(client.status().message());
  EXPECT_TRUE(absl::StrContains(message, "cannot reach the coordinator at 127.0.0.1:1")) << message;
  EXPECT_TRUE(absl::StrContains(message, "tug coordinator JOB --listen")) << message;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST(ControlClient, DoesNotAdviseToListenWhereOnlyTheHostItselfReaches) {
  const auto client = ControlClient::Connect("127.0.1.1:1", absl::Milliseconds(300));
  ASSERT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  const std::string message(client.status().message());
  EXPECT_TRUE(absl::StrContains(message, "resolves to this host only")) << message;
  EXPECT_FALSE(absl::StrContains(message, "--listen")) << message;
}

// Listens on a loopback address and never replies; `port`: a free one, set on return.
FileDescriptor ListenInSilence(const char* host, int& port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* at = nullptr;
  if (getaddrinfo(host, "0", &hints, &at) != 0) return FileDescriptor();
  FileDescriptor fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  const bool listens = bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 &&
                       listen(fd.get(), SOMAXCONN) == 0 &&
                       getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0;
  freeaddrinfo(at);
  port = ntohs(reinterpret_cast<sockaddr_in&>(own).sin_port);  // IPv6 has it at the same offset
  return listens ? std::move(fd) : FileDescriptor();
}

TEST(ControlClient, TellsWhoListensWithOtherKeysFromNobody) {
  const absl::StatusOr<JobKeys> keys = MakeJobKeys(SecurityConfig::CURVE);
  ASSERT_TRUE(keys.ok()) << keys.status();
  const auto connect = [&](const std::string& host, int port) {
    return ControlClient::Connect(absl::StrCat(host, ":", port), absl::Milliseconds(300), *keys)
        .status()
        .code();
  };
  EXPECT_EQ(connect("127.0.0.1", 1), absl::StatusCode::kUnavailable);
  int port = 0;
  const FileDescriptor four = ListenInSilence("127.0.0.1", port);
  ASSERT_TRUE(four.valid());
  EXPECT_EQ(connect("127.0.0.1", port), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(connect("localhost", port), absl::StatusCode::kUnauthenticated);
  const FileDescriptor six = ListenInSilence("::1", port);
  if (!six.valid()) GTEST_SKIP() << "skipped: this host has no IPv6 loopback";
  EXPECT_EQ(connect("[::1]", port), absl::StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace tug
