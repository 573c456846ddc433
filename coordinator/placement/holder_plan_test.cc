// SPDX-License-Identifier: Apache-2.0
#include "coordinator/placement/holder_plan.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "coordinator/placement/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using Lanes = std::vector<uint32_t>;

std::vector<SegmentHeld> Segments(const std::vector<uint64_t>& bytes,
                                  const std::vector<uint32_t>& owners) {
  std::vector<SegmentHeld> segments;
  for (size_t id = 0; id < bytes.size(); ++id) {
    segments.push_back({.bytes = bytes[id], .owner = owners[id], .copies = {}, .whole_copies = 0});
  }
  return segments;
}

std::vector<SegmentHeld> AsHeld(const std::vector<SegmentHeld>& before,
                                const std::vector<PlannedHolders>& planned) {
  std::vector<SegmentHeld> segments;
  for (size_t id = 0; id < planned.size(); ++id) {
    segments.push_back({.bytes = before[id].bytes,
                        .owner = planned[id].owner,
                        .copies = planned[id].copies,
                        .whole_copies = planned[id].copies.size()});
  }
  return segments;
}

std::vector<uint64_t> OwnedBytes(const std::vector<SegmentHeld>& segments,
                                 const std::vector<PlannedHolders>& planned, size_t lanes) {
  std::vector<uint64_t> bytes(lanes, 0);
  for (size_t id = 0; id < planned.size(); ++id) bytes[planned[id].owner] += segments[id].bytes;
  return bytes;
}

TEST(PlanHolders, LeavesWhatIsPlacedByBytesWhereItIs) {
  const std::vector<uint64_t> bytes{100, 50, 60, 40, 10, 10, 10};
  const Lanes owners = PlaceSegments(bytes, 3);
  const auto planned = PlanHolders(Segments(bytes, owners), Lanes{1, 2, 3}, 1);
  for (size_t id = 0; id < bytes.size(); ++id) {
    EXPECT_EQ(planned[id].owner, owners[id]) << id;
    EXPECT_TRUE(planned[id].copies.empty());
  }
}

TEST(PlanHolders, LeavesWhatIsPlacedByWeightsWhereItIs) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> bytes(random() % 60 + 1);
    for (uint64_t& b : bytes) b = random() % 30 + 1;
    Lanes weights(random() % 6 + 1), servers;
    for (uint32_t& w : weights) {
      w = static_cast<uint32_t>(random() % 5);
      servers.push_back(static_cast<uint32_t>(servers.size()));
    }
    weights[random() % weights.size()] = 4;
    const Lanes owners = PlaceSegments(bytes, weights);
    const auto planned = PlanHolders(Segments(bytes, owners), servers, 1, weights);
    for (size_t id = 0; id < bytes.size(); ++id) EXPECT_EQ(planned[id].owner, owners[id]) << round;
  }
}

TEST(PlanHolders, MovesSegmentsUntilOwnedBytesFollowWeights) {
  const std::vector<uint64_t> bytes(60, 10);
  const auto segments = Segments(bytes, Lanes(60, 0));
  const auto planned = PlanHolders(segments, Lanes{1, 2, 3}, 1, Lanes{1, 0, 4});
  EXPECT_THAT(OwnedBytes(segments, planned, 3), ElementsAre(120, 0, 480));
  const auto again = PlanHolders(AsHeld(segments, planned), Lanes{1, 2, 3}, 1, Lanes{1, 0, 4});
  EXPECT_EQ(again, planned);
}

TEST(PlanHolders, AServerOfWeightZeroKeepsCopiesWhereOthersAreTooFew) {
  const std::vector<uint64_t> bytes(6, 10);
  const auto planned = PlanHolders(Segments(bytes, Lanes(6, 0)), Lanes{1, 2}, 2, Lanes{1, 0});
  for (const PlannedHolders& holders : planned) {
    EXPECT_EQ(holders.owner, 0u);
    EXPECT_THAT(holders.copies, ElementsAre(1));
  }
}

TEST(PlanHolders, CopiesGoToTheNextServerThatHoldsLeast) {
  const auto planned =
      PlanHolders(Segments({10, 10, 10}, {0, 1, 2}), Lanes{7, 8, 9}, /*holders=*/2);
  EXPECT_THAT(planned[0].copies, ElementsAre(1));
  EXPECT_THAT(planned[1].copies, ElementsAre(2));
  EXPECT_THAT(planned[2].copies, ElementsAre(0));
}

TEST(PlanHolders, KeepsFewerCopiesWhereThereAreFewerServers) {
  const auto planned = PlanHolders(Segments({10, 10}, {0, 1}), Lanes{7, 7}, /*holders=*/2);
  EXPECT_TRUE(planned[0].copies.empty());
  EXPECT_TRUE(planned[1].copies.empty());
}

TEST(PlanHolders, ALaneThatJoinsGetsItsShareAndNothingElseMoves) {
  const std::vector<uint64_t> bytes(12, 10);
  const Lanes owners{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  const auto planned = PlanHolders(Segments(bytes, owners), Lanes{1, 2, 3}, 1);
  int moved = 0;
  for (size_t id = 0; id < bytes.size(); ++id) {
    moved += planned[id].owner != owners[id] ? 1 : 0;
    EXPECT_TRUE(planned[id].owner == owners[id] || planned[id].owner == 2);
  }
  EXPECT_EQ(moved, 4);
}

TEST(PlanHolders, AnOwnerThatGoesLeavesItsSegmentToAWholeCopy) {
  std::vector<SegmentHeld> segments = Segments({10, 10, 10}, {0, 0, 0});
  segments[0] = {.bytes = 10, .owner = std::nullopt, .copies = {1, 0}, .whole_copies = 1};
  segments[1].owner = 2;
  const auto planned = PlanHolders(segments, Lanes{1, 2, 3}, 1);
  EXPECT_EQ(planned[0].owner, 1u);
}

TEST(PlanHolders, BytesWanderByTradingPlacesWithACopyFirst) {
  // Lane 0 owns all; segment 2 has its copy on lane 1 already.
  std::vector<SegmentHeld> segments = Segments({10, 10, 10, 10}, {0, 0, 0, 0});
  segments[2].copies = {1};
  segments[2].whole_copies = 1;
  const auto planned = PlanHolders(segments, Lanes{1, 2}, 2);
  EXPECT_EQ(planned[2].owner, 1u);
  EXPECT_THAT(planned[2].copies, ElementsAre(0));
  EXPECT_THAT(OwnedBytes(segments, planned, 2), ElementsAre(20, 20));
}

// From any start: distinct servers, balance, and a fixed point.
TEST(PlanHolders, EndsBalancedFromAnywhere) {
  uint64_t state = 12345;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 300; ++round) {
    const auto servers = static_cast<uint32_t>(1 + random(5));
    const auto per_server = static_cast<uint32_t>(1 + random(3));
    const auto holders = static_cast<uint32_t>(1 + random(2));
    Lanes server_of_lane;
    for (uint32_t s = 0; s < servers; ++s) {
      for (uint32_t i = 0; i < per_server; ++i) server_of_lane.push_back(s + 1);
    }
    const uint32_t lanes = servers * per_server;
    std::vector<SegmentHeld> segments(random(40));
    uint64_t largest = 0;
    for (SegmentHeld& segment : segments) {
      segment.bytes = 1 + random(100);
      largest = std::max(largest, segment.bytes);
      if (random(4) > 0) segment.owner = static_cast<uint32_t>(random(lanes));
      const auto copy = static_cast<uint32_t>(random(lanes));
      if (random(2) == 0 || copy == segment.owner) continue;
      segment.copies = {copy};
      segment.whole_copies = random(2);
    }
    const auto planned = PlanHolders(segments, server_of_lane, holders);
    std::vector<uint64_t> owned(lanes, 0), held(lanes, 0);
    for (size_t id = 0; id < segments.size(); ++id) {
      std::set<uint32_t> on{server_of_lane[planned[id].owner]};
      owned[planned[id].owner] += segments[id].bytes;
      held[planned[id].owner] += segments[id].bytes;
      for (const uint32_t lane : planned[id].copies) {
        on.insert(server_of_lane[lane]);
        held[lane] += segments[id].bytes;
      }
      EXPECT_EQ(on.size(), std::min(holders, servers)) << round;
    }
    const auto gap = [](const std::vector<uint64_t>& bytes) {
      return *std::max_element(bytes.begin(), bytes.end()) -
             *std::min_element(bytes.begin(), bytes.end());
    };
    EXPECT_LE(gap(owned), largest) << round;
    EXPECT_LE(gap(held), 2 * largest) << round;
    EXPECT_EQ(PlanHolders(AsHeld(segments, planned), server_of_lane, holders), planned) << round;
  }
}

}  // namespace
}  // namespace tug
