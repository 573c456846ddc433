// SPDX-License-Identifier: Apache-2.0
#include "transport/zap_handler.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "security/job_keys.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr PeerId kLane = LanePeer(0);
constexpr PeerId kWorker = WorkerPeer(1);

JobKeys Keys(SecurityConfig::Mode mode) {
  return mode == SecurityConfig::NONE ? JobKeys() : MakeJobKeys(mode).value();
}

std::unique_ptr<ZmqTransport> Open(PeerId self, const JobKeys& keys) {
  ZmqTransport::Options options;
  options.self = self;
  if (self == kLane) options.bind_host = "127.0.0.1";
  options.keys = keys;
  return ZmqTransport::Create(options).value();
}

Outgoing To(PeerId peer, uint64_t clock) {
  Outgoing message;
  message.to = peer;
  message.header.kind = MessageKind::kPull;
  message.header.clock = clock;
  return message;
}

// Polls all transports until `done` holds; false on timeout.
bool PollUntil(const std::vector<ZmqTransport*>& transports, uint64_t& received,
               const std::function<bool()>& done) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!done()) {
    if (absl::Now() > deadline) return false;
    for (ZmqTransport* transport : transports) {
      transport->Poll(absl::Milliseconds(1), [&](Message) { ++received; });
    }
  }
  return true;
}

class ZapHandlerTest : public ::testing::TestWithParam<SecurityConfig::Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, ZapHandlerTest,
                         ::testing::Values(SecurityConfig::TOKEN, SecurityConfig::CURVE),
                         [](const auto& mode) { return ModeName(mode.param); });

TEST_P(ZapHandlerTest, MembersReachEachOtherBothWays) {
  const JobKeys keys = Keys(GetParam());
  const auto lane = Open(kLane, keys);
  const auto worker = Open(kWorker, keys);
  ASSERT_TRUE(worker->Connect(kLane, lane->endpoint()).ok());
  ASSERT_TRUE(worker->Send(To(kLane, 1)).ok());
  uint64_t received = 0;
  ASSERT_TRUE(PollUntil({lane.get(), worker.get()}, received, [&] { return received == 1; }));
  ASSERT_TRUE(lane->Send(To(kWorker, 2)).ok());
  ASSERT_TRUE(PollUntil({lane.get(), worker.get()}, received, [&] { return received == 2; }));
  EXPECT_EQ(lane->counters().connections_refused, 0u);
}

// Strangers without keys, with other keys of the mode, and with keys of the other mode.
TEST_P(ZapHandlerTest, StrangersAreCountedAndReachNobody) {
  const JobKeys keys = Keys(GetParam());
  const auto lane = Open(kLane, keys);
  for (const SecurityConfig::Mode mode :
       {SecurityConfig::NONE, SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const uint64_t before = lane->counters().connections_refused;
    const auto stranger = Open(kWorker, Keys(mode));
    ASSERT_TRUE(stranger->Connect(kLane, lane->endpoint()).ok());
    ASSERT_TRUE(stranger->Send(To(kLane, 1)).ok());
    uint64_t received = 0;
    EXPECT_TRUE(PollUntil({lane.get(), stranger.get()}, received, [&] {
      return lane->counters().connections_refused > before;
    })) << ModeName(mode);
    EXPECT_EQ(received, 0u);
    EXPECT_FALSE(lane->Send(To(kWorker, 2)).ok());
  }
  // A member is still accepted.
  const auto worker = Open(kWorker, keys);
  ASSERT_TRUE(worker->Connect(kLane, lane->endpoint()).ok());
  ASSERT_TRUE(worker->Send(To(kLane, 3)).ok());
  uint64_t received = 0;
  EXPECT_TRUE(PollUntil({lane.get(), worker.get()}, received, [&] { return received == 1; }));
}

// A lane without keys does not belong to a job with keys.
TEST_P(ZapHandlerTest, MembersSendNothingToAStranger) {
  for (const JobKeys& others : {JobKeys(), Keys(GetParam())}) {
    const auto impostor = Open(kLane, others);
    const auto worker = Open(kWorker, Keys(GetParam()));
    ASSERT_TRUE(worker->Connect(kLane, impostor->endpoint()).ok());
    ASSERT_TRUE(worker->Send(To(kLane, 1)).ok());
    uint64_t received = 0;
    const absl::Time end = absl::Now() + absl::Milliseconds(300);
    PollUntil({impostor.get(), worker.get()}, received, [&] { return absl::Now() > end; });
    EXPECT_EQ(received, 0u);
  }
}

// For ThreadSanitizer and to detect leaked handles: many peers connect and disconnect while the
// lane is polled.
TEST_P(ZapHandlerTest, ManyComeAndGo) {
  const JobKeys keys = Keys(GetParam());
  const auto lane = Open(kLane, keys);
  const std::string endpoint = lane->endpoint();
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        const auto peer = Open(WorkerPeer(100 + t), t == 0 ? keys : Keys(GetParam()));
        EXPECT_TRUE(peer->Connect(kLane, endpoint).ok());
        EXPECT_TRUE(peer->Send(To(kLane, 1)).ok());
        peer->Poll(absl::Milliseconds(20), [](Message) {});
      }
      ++ended;
    });
  }
  uint64_t received = 0;
  EXPECT_TRUE(PollUntil({lane.get()}, received, [&] { return ended == 3; }));
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(received, 10u);
}

TEST_P(ZapHandlerTest, EndsWithATransportThatWasNeverUsed) {
  for (int i = 0; i < 20; ++i) Open(kLane, Keys(GetParam()));
}

TEST(ZapHandler, IsNotThereWithoutKeys) {
  const auto lane = Open(kLane, JobKeys());
  EXPECT_EQ(lane->counters().connections_refused, 0u);
}

}  // namespace
}  // namespace tug
