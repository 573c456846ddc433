// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated/simulated_network.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 7;

Lease Floats(std::vector<float> values) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  return Lease(owner, std::span<const float>(*owner));
}

Outgoing Push(PeerId to, uint64_t clock, Lease payload = Lease()) {
  Outgoing message;
  message.to = to;
  message.header.kind = MessageKind::kPush;
  message.header.clock = clock;
  message.payload = std::move(payload);
  return message;
}

// A lane and a worker connected to it; records the messages that arrive at either.
class SimulatedNetworkTest : public ::testing::Test {
 protected:
  static constexpr SimulatedNetwork::Options kCalm = {absl::Milliseconds(1), absl::Milliseconds(1),
                                                      0, 0};

  void Start(const SimulatedNetwork::Options& options, uint64_t seed = kSeed) {
    network_ = std::make_unique<SimulatedNetwork>(seed, options, time_);
    lane_ = network_->NewEndpoint(LanePeer(0), [this] { Take(*lane_, at_lane_); });
    worker_ = network_->NewEndpoint(WorkerPeer(1), [this] { Take(*worker_, at_worker_); });
    ASSERT_TRUE(worker_->Connect(LanePeer(0), "simulated").ok());
  }

  static void Take(SimulatedTransport& transport, std::vector<Message>& to) {
    transport.Poll(absl::ZeroDuration(), [&](Message m) { to.push_back(std::move(m)); });
  }

  void RunAll() {
    while (time_.RunNext()) {
    }
  }

  // Clocks of `messages` pushes in order of arrival.
  std::vector<uint64_t> OrderOfArrival(const SimulatedNetwork::Options& options, uint64_t seed,
                                       int messages) {
    at_lane_.clear();
    lane_.reset();
    worker_.reset();
    Start(options, seed);
    for (int clock = 0; clock < messages; ++clock) {
      EXPECT_TRUE(worker_->Send(Push(LanePeer(0), clock)).ok());
    }
    RunAll();
    std::vector<uint64_t> clocks;
    for (const Message& m : at_lane_) clocks.push_back(m.header.clock);
    return clocks;
  }

  SimulatedTime time_;
  std::unique_ptr<SimulatedNetwork> network_;
  std::unique_ptr<SimulatedTransport> lane_;
  std::unique_ptr<SimulatedTransport> worker_;
  std::vector<Message> at_lane_;
  std::vector<Message> at_worker_;
};

TEST_F(SimulatedNetworkTest, DeliversHeaderAndPayloadAfterTheDelay) {
  Start(kCalm);
  ASSERT_TRUE(worker_->Send(Push(LanePeer(0), 3, Floats({1, 2, 3}))).ok());
  EXPECT_THAT(at_lane_, SizeIs(0));
  RunAll();
  ASSERT_THAT(at_lane_, SizeIs(1));
  EXPECT_EQ(time_.Now(), absl::UnixEpoch() + absl::Milliseconds(1));
  EXPECT_EQ(at_lane_[0].header.sender, WorkerPeer(1));
  EXPECT_EQ(at_lane_[0].header.clock, 3u);
  EXPECT_EQ(at_lane_[0].header.payload_bytes, 12u);
  EXPECT_THAT(at_lane_[0].payload.floats(), ElementsAre(1, 2, 3));
  EXPECT_EQ(lane_->counters().received_bytes, kHeaderBytes + 12);
  EXPECT_EQ(worker_->counters().sent_bytes, kHeaderBytes + 12);
}

TEST_F(SimulatedNetworkTest, AnswersWhoConnectedAndNobodyElse) {
  Start(kCalm);
  EXPECT_TRUE(lane_->Send(Push(WorkerPeer(1), 0)).ok());
  EXPECT_EQ(lane_->Send(Push(WorkerPeer(2), 0)).code(), absl::StatusCode::kNotFound);
  RunAll();
  EXPECT_THAT(at_worker_, SizeIs(1));
}

TEST_F(SimulatedNetworkTest, ADeadPeerIsNotFoundByWhomItConnectedTo) {
  Start(kCalm);
  EXPECT_TRUE(lane_->Send(Push(WorkerPeer(1), 0)).ok());
  worker_.reset();
  RunAll();
  EXPECT_EQ(lane_->Send(Push(WorkerPeer(1), 1)).code(), absl::StatusCode::kNotFound);
  // Its successor is another connection.
  worker_ = network_->NewEndpoint(WorkerPeer(1), [this] { Take(*worker_, at_worker_); });
  EXPECT_EQ(lane_->Send(Push(WorkerPeer(1), 2)).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(worker_->Connect(LanePeer(0), "simulated").ok());
  EXPECT_TRUE(lane_->Send(Push(WorkerPeer(1), 3)).ok());
  RunAll();
  ASSERT_THAT(at_worker_, SizeIs(1));
  EXPECT_EQ(at_worker_[0].header.clock, 3u);
}

TEST_F(SimulatedNetworkTest, MessagesToADeadListenerAreLostSilentlyUntilItIsBack) {
  Start(kCalm);
  lane_.reset();
  EXPECT_TRUE(worker_->Send(Push(LanePeer(0), 0)).ok());
  RunAll();
  lane_ = network_->NewEndpoint(LanePeer(0), [this] { Take(*lane_, at_lane_); });
  EXPECT_TRUE(lane_->Send(Push(WorkerPeer(1), 5)).ok()) << "the worker reconnects by itself";
  EXPECT_TRUE(worker_->Send(Push(LanePeer(0), 1)).ok());
  RunAll();
  ASSERT_THAT(at_lane_, SizeIs(1));
  EXPECT_EQ(at_lane_[0].header.clock, 1u);
}

TEST_F(SimulatedNetworkTest, ReordersRepeatsAndLosesAsItsSeedSays) {
  const SimulatedNetwork::Options rough = {absl::Microseconds(10), absl::Milliseconds(10), 0.2,
                                           0.2};
  const std::vector<uint64_t> first = OrderOfArrival(rough, kSeed, 1000);
  EXPECT_EQ(OrderOfArrival(rough, kSeed, 1000), first);
  EXPECT_NE(OrderOfArrival(rough, kSeed + 1, 1000), first);

  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  const std::set<uint64_t> distinct(first.begin(), first.end());
  // 800 expected, and 160 of them twice; four standard deviations are 51 and 46.
  EXPECT_NEAR(static_cast<double>(distinct.size()), 800, 51) << "seed " << kSeed;
  EXPECT_NEAR(static_cast<double>(first.size() - distinct.size()), 160, 46) << "seed " << kSeed;
}

TEST_F(SimulatedNetworkTest, DelaysStayInRange) {
  Start({absl::Milliseconds(3), absl::Milliseconds(5), 0.5, 0});
  std::vector<absl::Time> arrivals;
  network_->set_trace([&](const SimulatedNetwork::TraceEntry& entry) {
    if (entry.event == SimulatedNetwork::Event::kDelivered) arrivals.push_back(entry.at);
  });
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(worker_->Send(Push(LanePeer(0), i)).ok());
  RunAll();
  EXPECT_GT(arrivals.size(), 250u);
  for (const absl::Time at : arrivals) {
    EXPECT_GE(at, absl::UnixEpoch() + absl::Milliseconds(3));
    EXPECT_LE(at, absl::UnixEpoch() + absl::Milliseconds(5));
  }
}

TEST_F(SimulatedNetworkTest, HoldsTheLeaseUntilTheMessageIsThere) {
  Start(kCalm);
  auto buffer = std::make_shared<std::vector<float>>(4, 1.0f);
  ASSERT_TRUE(
      worker_->Send(Push(LanePeer(0), 0, Lease(buffer, std::span<const float>(*buffer)))).ok());
  EXPECT_EQ(buffer.use_count(), 2);
  RunAll();
  EXPECT_EQ(buffer.use_count(), 1);
  // The receiver has its own copy.
  (*buffer)[0] = 2;
  ASSERT_THAT(at_lane_, SizeIs(1));
  EXPECT_THAT(at_lane_[0].payload.floats(), ElementsAre(1, 1, 1, 1));
}

TEST_F(SimulatedNetworkTest, ReleasesTheLeaseOfALostMessage) {
  Start({absl::Milliseconds(1), absl::Milliseconds(1), 0, 1.0});
  auto buffer = std::make_shared<std::vector<float>>(4, 1.0f);
  ASSERT_TRUE(
      worker_->Send(Push(LanePeer(0), 0, Lease(buffer, std::span<const float>(*buffer)))).ok());
  RunAll();
  EXPECT_EQ(buffer.use_count(), 1);
  EXPECT_THAT(at_lane_, SizeIs(0));
}

TEST_F(SimulatedNetworkTest, CatchesAChangeOfLeasedBytes) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto change_while_leased = [this] {
    Start(kCalm);
    std::vector<float> buffer(4, 1.0f);
    const Lease lease(nullptr, std::span<const float>(buffer));
    ASSERT_TRUE(worker_->Send(Push(LanePeer(0), 0, lease)).ok());
    buffer[2] = 5;
    RunAll();
  };
  EXPECT_DEATH(change_while_leased(), "lane 0 was changed before its lease was released");
}

TEST_F(SimulatedNetworkTest, PollTakesABatchAtATime) {
  Start(kCalm);
  size_t seen = 0;
  auto other = network_->NewEndpoint(LanePeer(1), [] {});
  ASSERT_TRUE(worker_->Connect(LanePeer(1), "simulated").ok());
  for (int i = 0; i < Transport::kMaxBatch + 5; ++i) {
    ASSERT_TRUE(worker_->Send(Push(LanePeer(1), i)).ok());
  }
  RunAll();
  const auto count = [&](const Message&) { ++seen; };
  other->Poll(absl::InfiniteDuration(), count);
  EXPECT_EQ(seen, static_cast<size_t>(Transport::kMaxBatch));
  EXPECT_EQ(other->mail(), 5u);
  other->Poll(absl::InfiniteDuration(), count);
  EXPECT_EQ(other->mail(), 0u);
}

TEST_F(SimulatedNetworkTest, WakeCallsTheHook) {
  Start(kCalm);
  int calls = 0;
  auto other = network_->NewEndpoint(LanePeer(1), [&] { ++calls; });
  other->Wake();
  EXPECT_EQ(calls, 0);
  RunAll();
  EXPECT_EQ(calls, 1);
  other->Wake();
  other.reset();
  RunAll();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tug
