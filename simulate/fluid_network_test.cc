#include "simulate/fluid_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tug {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Through {
  double time;
  uint64_t message;
};

std::vector<Through> RunOut(FluidNetwork& network) {
  std::vector<Through> through;
  std::vector<FluidNetwork::Arrival> arrivals;
  while (network.NextTime() < kNever) {
    const double time = network.NextTime();
    arrivals.clear();
    network.Advance(time, arrivals);
    for (const FluidNetwork::Arrival& arrival : arrivals)
      through.push_back({time, arrival.message});
  }
  return through;
}

TEST(FluidNetwork, SendsMessagesOfAConnectionInOrderAtTheSlowerLinksRate) {
  FluidNetwork network;
  const auto connection = network.Connect(network.AddLink(10), 1, network.AddLink(5), 1);
  EXPECT_EQ(network.NextTime(), kNever);
  network.Send(connection, 10, 1);
  network.Send(connection, 5, 2);
  const std::vector<Through> through = RunOut(network);
  ASSERT_EQ(through.size(), 2u);
  EXPECT_EQ(through[0].message, 1u);
  EXPECT_NEAR(through[0].time, 2, 1e-9);
  EXPECT_EQ(through[1].message, 2u);
  EXPECT_NEAR(through[1].time, 3, 1e-9);
}

TEST(FluidNetwork, GivesWhatOneCannotUseToTheOthers) {
  FluidNetwork network;
  const auto sender = network.AddLink(9);
  const auto slow = network.Connect(sender, 1, network.AddLink(2), 1);
  const auto fast = network.Connect(sender, 1, network.AddLink(100), 1);
  network.Send(slow, 100, 1);
  network.Send(fast, 100, 2);
  EXPECT_DOUBLE_EQ(network.rate(slow), 2);
  EXPECT_DOUBLE_EQ(network.rate(fast), 7);
}

TEST(FluidNetwork, CountsAConnectionByItsWeight) {
  FluidNetwork network;
  const auto receiver = network.AddLink(10);
  const auto four = network.Connect(network.AddLink(10), 1, receiver, 4);
  const auto one = network.Connect(network.AddLink(10), 1, receiver, 1);
  network.Send(four, 10, 1);
  network.Send(one, 4, 2);
  EXPECT_DOUBLE_EQ(network.rate(four), 2);
  EXPECT_DOUBLE_EQ(network.rate(one), 2);
  std::vector<FluidNetwork::Arrival> arrivals;
  network.Advance(network.NextTime(), arrivals);  // the one has ended
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_DOUBLE_EQ(network.rate(one), 0);
  EXPECT_DOUBLE_EQ(network.rate(four), 2.5);
}

// Max-min fair: no link carries more than it can, and every connection has a link that is full and
// on which none gets more than it.
TEST(FluidNetwork, SharesFairlyWhateverTheNetwork) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    FluidNetwork network;
    struct Ends {
      uint32_t from, weight_from, to, weight_to;
    };
    std::vector<double> links;
    for (int i = 0; i < 8; ++i) {
      links.push_back(1 + random() % 20);
      network.AddLink(links.back());
    }
    std::vector<Ends> connections;
    for (int i = 0; i < 12; ++i) {
      const Ends ends{static_cast<uint32_t>(random() % 4), static_cast<uint32_t>(1 + random() % 3),
                      static_cast<uint32_t>(4 + random() % 4),
                      static_cast<uint32_t>(1 + random() % 3)};
      connections.push_back(ends);
      network.Send(network.Connect(ends.from, ends.weight_from, ends.to, ends.weight_to), 10, 0);
    }
    std::vector<double> used(8, 0);
    std::vector<double> highest(8, 0);
    for (uint32_t c = 0; c < connections.size(); ++c) {
      const double rate = network.rate(c);
      used[connections[c].from] += rate * connections[c].weight_from;
      used[connections[c].to] += rate * connections[c].weight_to;
      highest[connections[c].from] = std::max(highest[connections[c].from], rate);
      highest[connections[c].to] = std::max(highest[connections[c].to], rate);
    }
    for (int link = 0; link < 8; ++link) EXPECT_LE(used[link], links[link] * (1 + 1e-6));
    for (uint32_t c = 0; c < connections.size(); ++c) {
      const auto limits = [&](uint32_t link) {
        return used[link] > links[link] * (1 - 1e-6) &&
               network.rate(c) > highest[link] * (1 - 1e-6);
      };
      EXPECT_TRUE(limits(connections[c].from) || limits(connections[c].to)) << trial;
    }
  }
}

TEST(FluidNetwork, LosesNothingWhenMessagesComeAtAnyTime) {
  std::mt19937 random(3);
  FluidNetwork network;
  for (int i = 0; i < 4; ++i) network.AddLink(1e9 + random() % 1000);
  for (uint32_t c = 0; c < 4; ++c) network.Connect(c % 2, 1, 2 + c / 2, 1);
  std::vector<FluidNetwork::Arrival> arrivals;
  double now = 1e4;  // late: times are coarse there
  network.Advance(now, arrivals);
  std::vector<int> last(4, -1);
  for (int message = 0; message < 2000; ++message) {
    network.Send(random() % 4, 1 + random() % 100000, static_cast<uint64_t>(message));
    if (random() % 3 == 0) continue;
    now = std::min(now + (random() % 1000) * 1e-7, network.NextTime());
    network.Advance(now, arrivals);
  }
  while (network.NextTime() < kNever) network.Advance(network.NextTime(), arrivals);
  ASSERT_EQ(arrivals.size(), 2000u);
  for (const FluidNetwork::Arrival& arrival : arrivals) {
    EXPECT_GT(static_cast<int>(arrival.message), last[arrival.connection]);
    last[arrival.connection] = static_cast<int>(arrival.message);
  }
}

}  // namespace
}  // namespace tug
