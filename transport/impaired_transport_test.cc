// SPDX-License-Identifier: Apache-2.0
#include "transport/impaired_transport.h"

#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 4711;

// Records each message and its time of sending; Poll advances the virtual time.
class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(SimulatedTime& time) : time_(time) {}
  absl::Status Connect(PeerId, const std::string&) override { return absl::OkStatus(); }
  absl::Status Send(Outgoing message) override {
    if (message.to == 0) return absl::NotFoundError("nobody");
    sent.emplace_back(time_.Now() - absl::UnixEpoch(), message.header.clock);
    return absl::OkStatus();
  }
  void Poll(absl::Duration timeout, const std::function<void(Message)>&) override {
    polls.push_back(timeout);
    if (timeout != absl::InfiniteDuration()) time_.RunUntil(time_.Now() + timeout);
  }
  void Wake() override {}
  TransportCounters counters() const override { return {.sent_messages = sent.size()}; }

  std::vector<std::pair<absl::Duration, uint64_t>> sent;  // time since the start, clock
  std::vector<absl::Duration> polls;

 private:
  SimulatedTime& time_;
};

class ImpairedTransportTest : public ::testing::Test {
 protected:
  void Open(const ImpairConfig& config, uint64_t seed = kSeed) {
    std::cout << "seed " << seed << std::endl;
    auto below = std::make_unique<FakeTransport>(time_);
    below_ = below.get();
    transport_ =
        std::make_unique<ImpairedTransport>(std::move(below), config, WorkerPeer(1), seed, &time_);
  }
  void Send(uint64_t clock, size_t payload_bytes = 0, PeerId to = LanePeer(0)) {
    Outgoing message;
    message.to = to;
    message.header.clock = clock;
    auto buffer = std::make_shared<AlignedBuffer>(payload_bytes);
    message.payload = Lease(buffer, std::span<const std::byte>(buffer->data(), payload_bytes));
    EXPECT_TRUE(transport_->Send(std::move(message)).ok());
  }
  void Poll(absl::Duration timeout) {
    transport_->Poll(timeout, [](Message) {});
  }
  std::vector<uint64_t> SentClocks() const {
    std::vector<uint64_t> clocks;
    for (const auto& [at, clock] : below_->sent) clocks.push_back(clock);
    return clocks;
  }

  SimulatedTime time_;
  FakeTransport* below_ = nullptr;
  std::unique_ptr<ImpairedTransport> transport_;
};

TEST_F(ImpairedTransportTest, ReturnsSameTransportWithoutImpairment) {
  auto below = std::make_unique<FakeTransport>(time_);
  Transport* const same = below.get();
  EXPECT_EQ(Impair(std::move(below), ImpairConfig(), WorkerPeer(1), kSeed).get(), same);
  ImpairConfig config;
  config.set_loss(0.1);
  below = std::make_unique<FakeTransport>(time_);
  Transport* const other = below.get();
  EXPECT_NE(Impair(std::move(below), config, WorkerPeer(1), kSeed).get(), other);
}

TEST_F(ImpairedTransportTest, HoldsAMessageForTheDelayAndPollWakesUpForIt) {
  ImpairConfig config;
  config.set_delay_ms(20);
  Open(config);
  Send(1);
  EXPECT_THAT(below_->sent, IsEmpty());
  Poll(absl::Milliseconds(5));
  EXPECT_THAT(below_->sent, IsEmpty());
  Send(2);
  Poll(absl::InfiniteDuration());
  Poll(absl::InfiniteDuration());
  EXPECT_THAT(below_->sent, ElementsAre(std::pair(absl::Milliseconds(20), 1),
                                        std::pair(absl::Milliseconds(25), 2)));
  EXPECT_THAT(below_->polls,
              ElementsAre(absl::Milliseconds(5), absl::Milliseconds(15), absl::Milliseconds(5)));
  Poll(absl::InfiniteDuration());
  EXPECT_EQ(below_->polls.back(), absl::InfiniteDuration());
}

TEST_F(ImpairedTransportTest, JitterKeepsTheOrder) {
  constexpr uint64_t kMessages = 200;
  ImpairConfig config;
  config.set_delay_ms(1);
  config.set_jitter_ms(10);
  Open(config);
  for (uint64_t i = 0; i < kMessages; ++i) {
    Send(i);
    time_.RunUntil(time_.Now() + absl::Milliseconds(1));
  }
  while (transport_->waiting() > 0) Poll(absl::InfiniteDuration());
  ASSERT_THAT(below_->sent, SizeIs(kMessages));
  for (uint64_t i = 0; i < kMessages; ++i) {
    const auto& [at, clock] = below_->sent[i];
    EXPECT_EQ(clock, i);
    EXPECT_GE(at, absl::Milliseconds(i + 1));
  }
}

TEST_F(ImpairedTransportTest, LosesTheSameMessagesFromTheSameSeed) {
  ImpairConfig config;
  config.set_loss(0.25);
  std::map<uint64_t, std::vector<uint64_t>> arrived;
  for (const uint64_t seed : {kSeed, kSeed + 1}) {
    Open(config, seed);
    for (uint64_t i = 0; i < 4000; ++i) Send(i);
    arrived[seed] = SentClocks();
    EXPECT_NEAR(static_cast<double>(arrived[seed].size()), 3000, 120);  // 4 standard deviations
    EXPECT_EQ(transport_->counters().lost, 4000 - arrived[seed].size());
  }
  EXPECT_NE(arrived[kSeed], arrived[kSeed + 1]);
  Open(config);
  for (uint64_t i = 0; i < 4000; ++i) Send(i);
  EXPECT_EQ(SentClocks(), arrived[kSeed]);
}

TEST_F(ImpairedTransportTest, PassesNoMoreThanTheRateAfterOneBurst) {
  constexpr size_t kBytes = 100000 - kHeaderBytes;
  ImpairConfig config;
  config.set_rate_mbit(80);  // 10 bytes per microsecond: 10 ms per message
  Open(config);
  const absl::Duration burst = absl::Microseconds(ImpairedTransport::kBurstBytes / 10.0);
  for (int round = 0; round < 2; ++round) {
    const absl::Duration start = time_.Now() - absl::UnixEpoch();
    below_->sent.clear();
    for (uint64_t i = 0; i < 20; ++i) Send(i, kBytes);
    while (transport_->waiting() > 0) Poll(absl::InfiniteDuration());
    ASSERT_THAT(below_->sent, SizeIs(20));
    for (uint64_t i = 0; i < 20; ++i) {
      const absl::Duration expected = start + absl::Milliseconds(10 * (i + 1)) - burst;
      EXPECT_LT(absl::AbsDuration(below_->sent[i].first - expected), absl::Microseconds(1)) << i;
    }
    time_.RunUntil(time_.Now() + absl::Seconds(10));  // saves up one burst, no more
  }
}

TEST_F(ImpairedTransportTest, CountsWhatIsRefusedWhenItIsDue) {
  ImpairConfig config;
  config.set_delay_ms(1);
  Open(config);
  Send(1, 0, /*to=*/0);
  Send(2);
  while (transport_->waiting() > 0) Poll(absl::InfiniteDuration());
  EXPECT_THAT(SentClocks(), ElementsAre(2));
  EXPECT_EQ(transport_->counters().lost, 1u);
  EXPECT_EQ(transport_->counters().sent_messages, 1u);
}

}  // namespace
}  // namespace tug
