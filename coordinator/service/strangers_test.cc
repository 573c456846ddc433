// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/strangers.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

const absl::Time kBegin = absl::UnixEpoch();

class StrangersTest : public ::testing::Test {
 protected:
  StrangersTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(listener_.get(), AnyAddress(), size), 0);
    EXPECT_EQ(listen(listener_.get(), 10), 0);
    EXPECT_EQ(getsockname(listener_.get(), AnyAddress(), &size), 0);
  }

  // Connects from `address` (pretended), as the next index of `others_`.
  void Come(const std::string& address, absl::Time now) { Come(address, now, strangers_); }
  void Come(const std::string& address, absl::Time now, Strangers& strangers) {
    others_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(others_.back().get(), AnyAddress(), sizeof(address_)), 0);
    FileDescriptor accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.valid());
    readers_.emplace_back(dup(accepted.get()));
    strangers.Add(address, static_cast<int>(others_.size()), std::move(accepted), now);
  }
  // Sends to a reader that reads as gRPC does.
  void Send(size_t index, size_t bytes) {
    std::string chunk(64 << 10, 'x');
    for (size_t sent = 0; sent < bytes; sent += chunk.size()) {
      ASSERT_EQ(send(others_[index].get(), chunk.data(), chunk.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(chunk.size()));
      ASSERT_EQ(recv(readers_[index].get(), chunk.data(), chunk.size(), MSG_WAITALL),
                static_cast<ssize_t>(chunk.size()));
    }
  }
  bool IsHungUpOn(size_t index) const {
    char byte;
    return recv(others_[index].get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  Strangers strangers_{2};
  std::vector<FileDescriptor> others_;

  std::vector<FileDescriptor> readers_;

 private:
  sockaddr* AnyAddress() { return reinterpret_cast<sockaddr*>(&address_); }

  FileDescriptor listener_;
  sockaddr_in address_{};
};

TEST_F(StrangersTest, AreHungUpOnWhenTheirTimeIsOver) {
  EXPECT_EQ(strangers_.HangUp(kBegin), absl::InfiniteFuture());
  Come("a", kBegin);
  Come("b", kBegin + absl::Seconds(1));
  EXPECT_EQ(strangers_.HangUp(kBegin), kBegin + Strangers::kInterval);
  EXPECT_FALSE(IsHungUpOn(0));
  const absl::Time end = kBegin + Strangers::kPatience;
  EXPECT_EQ(strangers_.HangUp(end), end + Strangers::kInterval);
  EXPECT_TRUE(IsHungUpOn(0));
  EXPECT_FALSE(IsHungUpOn(1));
  EXPECT_EQ(strangers_.HangUp(end + absl::Seconds(1)), absl::InfiniteFuture());
}

TEST_F(StrangersTest, MakeRoomForNewerOnesFromElsewhere) {
  Come("a member's", kBegin);
  for (size_t i = 0; i < Strangers::kMost; ++i) Come("a", kBegin);
  EXPECT_FALSE(IsHungUpOn(0));
  EXPECT_TRUE(IsHungUpOn(1));
  EXPECT_FALSE(IsHungUpOn(2));
}

TEST_F(StrangersTest, DisconnectsLargestSenderWhenStrangersSendTooMuch) {
  for (const char* address : {"a", "b", "c"}) Come(address, kBegin);
  Send(0, Strangers::kByteLimit / 4);
  Send(1, Strangers::kByteLimit / 2);
  strangers_.HangUp(kBegin);
  EXPECT_FALSE(IsHungUpOn(1));
  Send(2, Strangers::kByteLimit / 3);
  strangers_.HangUp(kBegin);
  EXPECT_FALSE(IsHungUpOn(0));
  EXPECT_TRUE(IsHungUpOn(1));
  EXPECT_FALSE(IsHungUpOn(2));
}

TEST_F(StrangersTest, AreNoLongerThoseWhoWereAdmitted) {
  Come("a", kBegin);
  strangers_.Admit("a 1");
  strangers_.Admit("nobody 1");
  EXPECT_EQ(strangers_.HangUp(kBegin + absl::Hours(1)), absl::InfiniteFuture());
  EXPECT_FALSE(IsHungUpOn(0));
}

TEST_F(StrangersTest, ForgetsEndedConnections) {
  Come("a", kBegin);
  others_.clear();
  shutdown(readers_[0].get(), SHUT_RDWR);  // as gRPC does
  EXPECT_EQ(strangers_.HangUp(kBegin), absl::InfiniteFuture());
}

TEST_F(StrangersTest, ThereMayBeAsManyAsMembersThatComeAtOnce) {
  Strangers strangers(Strangers::kMost);
  for (size_t i = 0; i < Strangers::kMost + 1; ++i) Come("a", kBegin, strangers);
  EXPECT_FALSE(IsHungUpOn(0));
}

TEST(ConnectionName, IsTheSameWithoutTheScope) {
  EXPECT_EQ(ConnectionName("10.0.0.3", 4711), "10.0.0.3 4711");
  EXPECT_EQ(ConnectionName("fe80::1%eth0", 1), "fe80::1 1");
}

}  // namespace
}  // namespace tug
