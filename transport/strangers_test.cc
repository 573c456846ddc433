// SPDX-License-Identifier: Apache-2.0
// Limits on what peers without keys can use of a lane's port.

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "transport/raw_connection_test_support.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

// A lane with keys that admits only a few strangers, whose handshake does not time out during the
// test.
class StrangersTest : public ::testing::TestWithParam<SecurityConfig::Mode> {
 protected:
  static constexpr size_t kMaxWaitingConnections = 8;

  StrangersTest() : keys_(MakeJobKeys(GetParam()).value()) {
    ZmqTransport::Options options;
    options.self = LanePeer(0);
    options.bind_host = "127.0.0.1";
    options.keys = keys_;
    options.max_waiting = kMaxWaitingConnections;
    options.handshake = absl::Minutes(10);
    lane_ = *ZmqTransport::Create(options);
    port_ = PortOf(lane_->endpoint());
  }

  std::unique_ptr<ZmqTransport> NewMember(uint32_t number) {
    ZmqTransport::Options options;
    options.self = WorkerPeer(number);
    options.keys = keys_;
    std::unique_ptr<ZmqTransport> member = *ZmqTransport::Create(options);
    EXPECT_TRUE(member->Connect(LanePeer(0), lane_->endpoint()).ok());
    return member;
  }

  bool PollLaneUntil(const std::function<bool()>& done) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > deadline) return false;
      lane_->Poll(absl::Milliseconds(1), [this](Message) { ++heard_; });
    }
    return true;
  }

  void ExpectIsHeard(ZmqTransport& member) {
    const uint64_t before = heard_;
    Outgoing message;
    message.to = LanePeer(0);
    ASSERT_TRUE(member.Send(std::move(message)).ok());
    member.Flush();
    EXPECT_TRUE(PollLaneUntil([&] { return heard_ > before; }));
  }

  const JobKeys keys_;
  std::unique_ptr<ZmqTransport> lane_;
  uint16_t port_ = 0;
  uint64_t heard_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Modes, StrangersTest,
                         ::testing::Values(SecurityConfig::TOKEN, SecurityConfig::CURVE),
                         [](const auto& mode) { return ModeName(mode.param); });

TEST_P(StrangersTest, KeepsOnlyAFewOfManySilentConnections) {
  const auto early = NewMember(1);
  ASSERT_NO_FATAL_FAILURE(ExpectIsHeard(*early));
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (size_t i = 0; i < 10 * kMaxWaitingConnections; ++i) {
    silent.push_back(std::make_unique<RawConnection>(port_));
  }
  const auto kept = [&] {
    return std::ranges::count_if(silent, [](auto& connection) { return !connection->HasEnded(); });
  };
  EXPECT_TRUE(PollLaneUntil([&] { return kept() <= int{kMaxWaitingConnections}; }));
  ASSERT_NO_FATAL_FAILURE(ExpectIsHeard(*early));
  const auto late = NewMember(2);
  ASSERT_NO_FATAL_FAILURE(ExpectIsHeard(*late));
}

TEST_P(StrangersTest, AMemberGetsInWhileOthersFloodThePort) {
  std::atomic<bool> enough = false;
  std::thread flood([&] {
    std::deque<std::unique_ptr<RawConnection>> silent;
    while (!enough) {
      silent.push_back(std::make_unique<RawConnection>(port_, INADDR_LOOPBACK + 1));
      if (silent.size() > 100) silent.pop_front();
    }
  });
  EXPECT_TRUE(PollLaneUntil([&] { return lane_->counters().connections_refused > 100; }));
  const auto member = NewMember(1);
  ExpectIsHeard(*member);
  enough = true;
  flood.join();
}

TEST_P(StrangersTest, MoreMembersThanStrangersMayWaitStayIn) {
  std::vector<std::unique_ptr<ZmqTransport>> members;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 3 * kMaxWaitingConnections; ++i) {
      if (round == 0) members.push_back(NewMember(static_cast<uint32_t>(i)));
      ASSERT_NO_FATAL_FAILURE(ExpectIsHeard(*members[i]));
    }
  }
  EXPECT_EQ(heard_, 6 * kMaxWaitingConnections);
  EXPECT_EQ(lane_->counters().connections_refused, 0u);
}

TEST_P(StrangersTest, DisconnectsPeerThatSendsMuchWithoutKeys) {
  const std::string mechanism = GetParam() == SecurityConfig::TOKEN ? "PLAIN" : "CURVE";
  RawConnection stranger(port_);
  stranger.Write(ZmtpGreeting(mechanism) + ZmtpLongFrame(64 << 20, /*command=*/true) +
                 Frame(1 << 20));
  EXPECT_TRUE(PollLaneUntil([&] { return stranger.HasEnded(); }));
}

}  // namespace
}  // namespace tug
