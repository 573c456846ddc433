// SPDX-License-Identifier: Apache-2.0
#include "prediction/chunk_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace tug {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Links of 1000 bytes per second with queues of 1000 bytes, chunks of 10 bytes.
ChunkNetwork::Options Slow(double unevenness = 1) {
  return {.link_bytes_per_second = 1000,
          .queue_seconds = 1,
          .unevenness = unevenness,
          .chunk_bytes = 10};
}

// When each message is complete.
std::map<uint64_t, double> RunOut(ChunkNetwork& network) {
  std::map<uint64_t, double> times;
  std::vector<uint64_t> through;
  while (network.NextTime() < kNever) {
    const double time = network.NextTime();
    through.clear();
    network.Advance(time, through);
    for (const uint64_t message : through) {
      EXPECT_FALSE(times.contains(message)) << "through twice";
      times[message] = time;
    }
  }
  return times;
}

TEST(ChunkNetwork, SendsMessagesOfAConnectionInOrderAtTheRateOfALink) {
  ChunkNetwork network(Slow());
  const auto connection = network.Connect(network.AddSender(), 1, network.AddReceiver(), 1);
  EXPECT_EQ(network.NextTime(), kNever);
  network.Send(connection, 1000, 1);
  network.Send(connection, 500, 2);
  const auto times = RunOut(network);
  // Plus one chunk on the second link.
  EXPECT_NEAR(times.at(1), 1.01, 1e-9);
  EXPECT_NEAR(times.at(2), 1.51, 1e-9);
}

TEST(ChunkNetwork, TakesTurnsBetweenTheConnectionsOfASender) {
  ChunkNetwork network(Slow());
  const auto sender = network.AddSender();
  const auto large = network.Connect(sender, 1, network.AddReceiver(), 1);
  const auto small = network.Connect(sender, 1, network.AddReceiver(), 1);
  network.Send(large, 1000, 1);
  network.Send(small, 100, 2);
  const auto times = RunOut(network);
  EXPECT_NEAR(times.at(2), 0.2, 0.03);  // every other chunk
  EXPECT_NEAR(times.at(1), 1.1, 0.03);
}

TEST(ChunkNetwork, LetsASmallMessageWaitBehindWhatAReceiverQueues) {
  ChunkNetwork network(Slow());
  const auto receiver = network.AddReceiver();
  const auto one = network.Connect(network.AddSender(), 1, receiver, 1);
  const auto other = network.Connect(network.AddSender(), 1, receiver, 1);
  const auto third = network.Connect(network.AddSender(), 1, receiver, 1);
  network.Send(one, 5000, 1);
  network.Send(other, 5000, 2);
  std::vector<uint64_t> through;
  while (network.NextTime() < 2) network.Advance(network.NextTime(), through);
  const double sent = 2;
  network.Advance(sent, through);
  network.Send(third, 1, 3);
  // Two windows, each a third of the queue, are ahead.
  const double time = RunOut(network).at(3);
  EXPECT_GT(time, sent + 0.6);
  EXPECT_LT(time, sent + 0.8);
}

TEST(ChunkNetwork, CountsAConnectionByItsWeight) {
  ChunkNetwork network(Slow());
  const auto connection = network.Connect(network.AddSender(), 1, network.AddReceiver(), 4);
  network.Send(connection, 1000, 1);
  EXPECT_NEAR(RunOut(network).at(1), 4.01, 0.01);
}

TEST(ChunkNetwork, SharesALinkUnevenlyIfToldSo) {
  const auto spread = [](double unevenness) {
    ChunkNetwork network(Slow(unevenness));
    const auto receiver = network.AddReceiver();
    for (uint64_t i = 0; i < 4; ++i) {
      network.Send(network.Connect(network.AddSender(), 1, receiver, 1), 1000, i);
    }
    const auto times = RunOut(network);
    double first = kNever;
    double last = 0;
    for (const auto& [message, time] : times) {
      first = std::min(first, time);
      last = std::max(last, time);
    }
    EXPECT_NEAR(last, 4.01, 0.01) << "the link is always busy";
    return last - first;
  };
  EXPECT_LT(spread(1), 0.1);
  EXPECT_GT(spread(5), 0.5);
}

// Every byte passes once, in the order of its connection, no sooner than links allow.
TEST(ChunkNetwork, LosesNothingWhenMessagesComeAtAnyTime) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    ChunkNetwork network({.link_bytes_per_second = 1e9,
                          .queue_seconds = 1e-5 * (random() % 100),
                          .unevenness = 1.0 + random() % 4,
                          .chunk_bytes = 1000.0 + random() % 10000});
    for (int i = 0; i < 3; ++i) {
      network.AddSender();
      network.AddReceiver();
    }
    for (uint32_t c = 0; c < 9; ++c) network.Connect(c % 3, 1, c / 3, 1 + random() % 3);
    std::vector<uint64_t> through;
    std::vector<std::vector<uint64_t>> sent(9);
    std::vector<double> of_sender(3, 0);
    double now = 1e4;  // late: times are coarse there
    network.Advance(now, through);
    for (uint64_t message = 0; message < 1000; ++message) {
      const uint32_t connection = random() % 9;
      const double bytes = 1 + random() % 100000;
      network.Send(connection, bytes, message);
      sent[connection].push_back(message);
      of_sender[connection % 3] += bytes;
      if (random() % 3 == 0) continue;
      now = std::min(now + (random() % 1000) * 1e-7, network.NextTime());
      network.Advance(now, through);
    }
    while (network.NextTime() < kNever) {
      now = network.NextTime();
      network.Advance(now, through);
    }
    EXPECT_EQ(through.size(), 1000u);
    std::vector<size_t> place(1000);
    for (size_t i = 0; i < through.size(); ++i) place[through[i]] = i;
    for (const auto& messages : sent) {
      for (size_t i = 1; i < messages.size(); ++i) {
        EXPECT_GT(place[messages[i]], place[messages[i - 1]]);
      }
    }
    for (const double bytes : of_sender) EXPECT_GE(now - 1e4, bytes / 1e9 * (1 - 1e-9));
  }
}

}  // namespace
}  // namespace tug
