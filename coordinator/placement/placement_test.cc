// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/placement.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

#include "gtest/gtest.h"

namespace tug {
namespace {

std::vector<uint64_t> Loads(const std::vector<uint64_t>& bytes,
                            const std::vector<uint32_t>& lane_of, uint32_t lanes) {
  std::vector<uint64_t> loads(lanes, 0);
  for (size_t i = 0; i < bytes.size(); ++i) loads.at(lane_of.at(i)) += bytes[i];
  return loads;
}

TEST(PlaceSegments, GivesTheHeaviestFirstAndBreaksTiesByIndex) {
  EXPECT_EQ(PlaceSegments(std::vector<uint64_t>{10, 30, 10, 20}, 2),
            (std::vector<uint32_t>{1, 0, 0, 1}));
  EXPECT_EQ(PlaceSegments(std::vector<uint64_t>{5, 5, 5}, 3), (std::vector<uint32_t>{0, 1, 2}));
}

TEST(PlaceSegments, LeavesLanesEmptyWhenThereAreMoreLanesThanSegments) {
  EXPECT_EQ(PlaceSegments(std::vector<uint64_t>{7}, 3), (std::vector<uint32_t>{0}));
  EXPECT_TRUE(PlaceSegments({}, 3).empty());
}

TEST(PlaceSegments, KeepsLanesWithinOneSegmentOfEachOther) {
  const uint64_t seed = 20240607;
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> bytes(random() % 200 + 1);
    for (uint64_t& b : bytes) b = random() % (1 << (random() % 20 + 1)) + 1;
    const uint32_t lanes = random() % 16 + 1;
    const std::vector<uint32_t> lane_of = PlaceSegments(bytes, lanes);
    ASSERT_EQ(lane_of.size(), bytes.size());
    const std::vector<uint64_t> loads = Loads(bytes, lane_of, lanes);
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    const uint64_t heaviest = *std::max_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, heaviest) << "round " << round;
    // Graham's bound relative to the optimal placement, which is at least the mean and at least the
    // heaviest segment.
    const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const double lower_bound = std::max(total / lanes, static_cast<double>(heaviest));
    EXPECT_LE(*most, (2.0 - 1.0 / lanes) * lower_bound + 1e-9) << "round " << round;
  }
}

// Reference: heaviest first, each to the lane with the fewest bytes so far.
std::vector<uint32_t> PlacedByBytes(const std::vector<uint64_t>& bytes, uint32_t lanes) {
  std::vector<uint32_t> order(bytes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return bytes[a] > bytes[b]; });
  std::vector<uint64_t> loads(lanes, 0);
  std::vector<uint32_t> lane_of(bytes.size());
  for (const uint32_t id : order) {
    const auto lane = std::min_element(loads.begin(), loads.end()) - loads.begin();
    lane_of[id] = static_cast<uint32_t>(lane);
    loads[static_cast<size_t>(lane)] += bytes[id];
  }
  return lane_of;
}

TEST(PlaceSegments, WithEqualWeightsGoesByBytesAlone) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<uint64_t> bytes(random() % 100 + 1);
    for (uint64_t& b : bytes) b = random() % 64 + 1;
    const uint32_t lanes = random() % 9 + 1;
    const std::vector<uint32_t> weights(lanes, static_cast<uint32_t>(random() % 1000 + 1));
    EXPECT_EQ(PlaceSegments(bytes, lanes), PlacedByBytes(bytes, lanes)) << "round " << round;
    EXPECT_EQ(PlaceSegments(bytes, weights), PlacedByBytes(bytes, lanes)) << "round " << round;
  }
}

TEST(PlaceSegments, KeepsBytesInProportionToWeights) {
  const uint64_t seed = 20240608;
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> bytes(random() % 200 + 1);
    for (uint64_t& b : bytes) b = random() % 5000 + 1;
    std::vector<uint32_t> weights(random() % 8 + 1);
    for (uint32_t& w : weights) w = static_cast<uint32_t>(random() % 7);
    weights[random() % weights.size()] = 3;
    const auto lanes = static_cast<uint32_t>(weights.size());
    const std::vector<uint64_t> loads = Loads(bytes, PlaceSegments(bytes, weights), lanes);
    const auto heaviest = static_cast<double>(*std::max_element(bytes.begin(), bytes.end()));
    for (uint32_t a = 0; a < lanes; ++a) {
      if (weights[a] == 0) {
        EXPECT_EQ(loads[a], 0u) << "round " << round;
        continue;
      }
      for (uint32_t b = 0; b < lanes; ++b) {
        if (weights[b] == 0) continue;
        const double difference =
            static_cast<double>(loads[a]) / weights[a] - static_cast<double>(loads[b]) / weights[b];
        EXPECT_LE(difference, heaviest / 2 * (1.0 / weights[a] + 1.0 / weights[b]) + 1e-9)
            << "round " << round;
      }
    }
  }
}

TEST(AssignVirtualWorkers, DealsContiguousRunsAsEqualAsPossible) {
  EXPECT_EQ(AssignVirtualWorkers(5, 2), (std::vector<std::vector<uint32_t>>{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(AssignVirtualWorkers(3, 3), (std::vector<std::vector<uint32_t>>{{0}, {1}, {2}}));
  EXPECT_EQ(AssignVirtualWorkers(4, 1), (std::vector<std::vector<uint32_t>>{{0, 1, 2, 3}}));
}

}  // namespace
}  // namespace tug
