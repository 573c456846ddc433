#include "coordinator/checkpoint_collector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tug {
namespace {

CheckpointPart Part(uint32_t lane, uint64_t version, double pause = 0.001) {
  CheckpointPart part;
  part.set_lane(lane);
  part.set_version(version);
  part.set_file("lane-" + std::to_string(lane));
  part.set_pause_seconds(pause);
  part.set_write_seconds(2 * pause);
  return part;
}

TEST(CheckpointCollector, IsWholeWithTheLastLanesPart) {
  CheckpointCollector collector(2, 0, 0);
  EXPECT_FALSE(collector.Add(Part(1, 10, 0.5)).has_value());
  EXPECT_FALSE(collector.Add(Part(1, 10, 0.5)).has_value());
  const auto whole = collector.Add(Part(0, 10));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->version, 10u);
  EXPECT_EQ(whole->parts[0].file(), "lane-0");
  EXPECT_EQ(whole->parts[1].file(), "lane-1");
  EXPECT_DOUBLE_EQ(whole->pause_seconds, 0.5);
  EXPECT_DOUBLE_EQ(whole->write_seconds, 1.0);
}

TEST(CheckpointCollector, IgnoresRepeatsOfWholeCheckpointsAndUnknownLanes) {
  CheckpointCollector collector(1, 0, 5);
  EXPECT_FALSE(collector.Add(Part(0, 5)).has_value());
  EXPECT_TRUE(collector.Add(Part(0, 6)).has_value());
  EXPECT_FALSE(collector.Add(Part(0, 6)).has_value());
  EXPECT_FALSE(collector.Add(Part(1, 7)).has_value());
}

TEST(CheckpointCollector, TakesTheInitialWeightsWhereTheJobWritesThem) {
  CheckpointCollector collector(1, 0, std::nullopt);
  const auto whole = collector.Add(Part(0, 0));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->version, 0u);
  EXPECT_FALSE(collector.Add(Part(0, 0)).has_value());
  EXPECT_TRUE(collector.Add(Part(0, 1)).has_value());
}

TEST(CheckpointCollector, GathersTwoVersionsAtOnce) {
  CheckpointCollector collector(2, 0, 0);
  EXPECT_FALSE(collector.Add(Part(0, 1)).has_value());
  EXPECT_FALSE(collector.Add(Part(0, 2)).has_value());
  EXPECT_TRUE(collector.Add(Part(1, 1)).has_value());
  EXPECT_TRUE(collector.Add(Part(1, 2)).has_value());
}

TEST(CheckpointCollector, FoldsLanesClocksToTheLowestAndRefusesAnyOtherNumberOfThem) {
  CheckpointCollector collector(2, 3, 0);
  const auto with_clocks = [](CheckpointPart part, const std::vector<uint64_t>& clocks) {
    part.mutable_clocks()->Assign(clocks.begin(), clocks.end());
    return part;
  };
  EXPECT_FALSE(collector.Add(with_clocks(Part(0, 4), {5, 3, 4})).has_value());
  EXPECT_FALSE(collector.Add(with_clocks(Part(1, 4), {5, 3})).has_value());
  EXPECT_FALSE(collector.Add(Part(1, 4)).has_value());
  const auto whole = collector.Add(with_clocks(Part(1, 4), {6, 2, 4}));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->clocks, (std::vector<uint64_t>{5, 2, 4}));
}

TEST(CheckpointCollector, LanesWithoutSegmentsHaveNoPart) {
  CheckpointCollector collector(3, 0, std::nullopt);
  const std::vector<uint32_t> owners = {2, 0, 2, 2};
  collector.SetPlacement(7, owners);
  CheckpointPart part;
  part.set_placement(7);
  part.set_version(10);
  part.set_lane(1);
  EXPECT_FALSE(collector.Wants(part));
  part.set_lane(0);
  EXPECT_FALSE(collector.Add(part).has_value());
  part.set_lane(2);
  const std::optional<CollectedCheckpoint> whole = collector.Add(part);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->parts.size(), 2u);
}

CheckpointPart Residual(uint32_t virtual_worker, uint64_t version,
                        const std::string& file = "residual") {
  CheckpointPart part;
  part.set_virtual_worker(virtual_worker);
  part.set_version(version);
  part.set_file(file);
  return part;
}

TEST(CheckpointCollector, AwaitsAPartOfEachVirtualWorkerThatIsCarried) {
  CheckpointCollector collector(1, 0, 0);
  EXPECT_FALSE(collector.Wants(Residual(0, 10))) << "no part of the job's checkpoints";
  EXPECT_TRUE(collector.SetCarried({true, false, true}).empty());
  EXPECT_FALSE(collector.Wants(Residual(3, 10))) << "there is none";
  EXPECT_FALSE(collector.Add(Residual(0, 10)).has_value());
  EXPECT_FALSE(collector.AwaitsResiduals());
  EXPECT_FALSE(collector.Add(Part(0, 10)).has_value());
  EXPECT_TRUE(collector.AwaitsResiduals());
  EXPECT_FALSE(collector.Add(Residual(0, 10)).has_value());
  const auto whole = collector.Add(Residual(2, 10, ""));
  ASSERT_TRUE(whole.has_value());
  ASSERT_EQ(whole->parts.size(), 2u) << "one has nothing";
  EXPECT_EQ(whole->parts[0].file(), "lane-0");
  EXPECT_EQ(whole->parts[1].virtual_worker(), 0u);
  EXPECT_FALSE(collector.AwaitsResiduals());
}

TEST(CheckpointCollector, AVirtualWorkerThatIsGoneHoldsNothingUp) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (const uint64_t version : {5, 6}) {
    EXPECT_FALSE(collector.Add(Part(0, version)).has_value());
    EXPECT_FALSE(collector.Add(Residual(1, version)).has_value());
  }
  const std::vector<CollectedCheckpoint> whole = collector.SetCarried({false, true});
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].version, 5u);
  EXPECT_EQ(whole[1].version, 6u);
  EXPECT_EQ(whole[1].parts.size(), 2u);
}

TEST(CheckpointCollector, TheInitialWeightsHaveNoResiduals) {
  CheckpointCollector collector(1, 0, std::nullopt);
  collector.SetCarried({true});
  EXPECT_TRUE(collector.Add(Part(0, 0)).has_value());
}

TEST(CheckpointCollector, WhatHasAFileTakesThePlaceOfWhatHasNone) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true});
  EXPECT_FALSE(collector.Add(Residual(0, 4, "")).has_value());
  EXPECT_FALSE(collector.Add(Residual(0, 4, "first")).has_value());
  EXPECT_FALSE(collector.Wants(Residual(0, 4, "second")));
  EXPECT_FALSE(collector.Wants(Residual(0, 4, "")));
  const auto whole = collector.Add(Part(0, 4));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->parts.at(1).file(), "first");
}

TEST(CheckpointCollector, ResidualsStayWhenSegmentsMoveAndGoWhenTheyAreVoid) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (const uint64_t version : {4, 5}) {
    for (const uint32_t v : {0, 1}) EXPECT_FALSE(collector.Add(Residual(v, version)).has_value());
  }
  collector.ForgetResiduals(0, 4);
  const std::vector<uint32_t> owners = {0};
  collector.SetPlacement(2, owners);
  CheckpointPart part = Part(0, 4);
  part.set_placement(2);
  EXPECT_TRUE(collector.Add(part).has_value());
  part.set_version(5);
  EXPECT_FALSE(collector.Add(part).has_value());
  EXPECT_TRUE(collector.Add(Residual(0, 5)).has_value());
}

TEST(CheckpointCollector, ResidualsAloneHoldNoNewerCheckpointUp) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (uint64_t version = 1; version <= 3 * CheckpointCollector::kMaxOpen; ++version) {
    EXPECT_TRUE(collector.Wants(Residual(0, version)));
    EXPECT_FALSE(collector.Add(Residual(0, version)).has_value());
  }
  EXPECT_FALSE(collector.Add(Part(0, 1000)).has_value());
  EXPECT_FALSE(collector.Add(Residual(0, 1000)).has_value());
  EXPECT_TRUE(collector.Add(Residual(1, 1000)).has_value());
}

}  // namespace
}  // namespace tug
