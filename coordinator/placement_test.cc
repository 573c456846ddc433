#include "coordinator/placement.h"

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
    // Graham's bound against the best possible placement, which is at least the mean and at least
    // the heaviest.
    const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    const double lower_bound = std::max(total / lanes, static_cast<double>(heaviest));
    EXPECT_LE(*most, (2.0 - 1.0 / lanes) * lower_bound + 1e-9) << "round " << round;
  }
}

TEST(AssignVirtualWorkers, DealsContiguousRunsAsEqualAsPossible) {
  EXPECT_EQ(AssignVirtualWorkers(5, 2), (std::vector<std::vector<uint32_t>>{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(AssignVirtualWorkers(3, 3), (std::vector<std::vector<uint32_t>>{{0}, {1}, {2}}));
  EXPECT_EQ(AssignVirtualWorkers(4, 1), (std::vector<std::vector<uint32_t>>{{0, 1, 2, 3}}));
}

}  // namespace
}  // namespace tug
