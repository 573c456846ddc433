// SPDX-License-Identifier: Apache-2.0
#include "coordinator/checkpoints/checkpoint_collector.h"

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
  EXPECT_TRUE(collector.Add(Part(1, 10, 0.5)).empty());
  EXPECT_TRUE(collector.Add(Part(1, 10, 0.5)).empty());
  const auto whole = collector.Add(Part(0, 10));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].version, 10u);
  EXPECT_EQ(whole[0].parts[0].file(), "lane-0");
  EXPECT_EQ(whole[0].parts[1].file(), "lane-1");
  EXPECT_DOUBLE_EQ(whole[0].pause_seconds, 0.5);
  EXPECT_DOUBLE_EQ(whole[0].write_seconds, 1.0);
}

TEST(CheckpointCollector, IgnoresRepeatsOfWholeCheckpointsAndUnknownLanes) {
  CheckpointCollector collector(1, 0, 5);
  EXPECT_TRUE(collector.Add(Part(0, 5)).empty());
  EXPECT_EQ(collector.Add(Part(0, 6)).size(), 1u);
  EXPECT_TRUE(collector.Add(Part(0, 6)).empty());
  EXPECT_TRUE(collector.Add(Part(1, 7)).empty());
}

// ReadManifest would refuse these when it reads the committed checkpoint.
TEST(CheckpointCollector, IgnoresPartsWhoseFileNoManifestCanName) {
  CheckpointCollector collector(2, 0, 0);
  for (const char* file :
       {"", "..", "../lane-1", "/lane-1", "manifest.textproto", "\x1b[2J\nlane"}) {
    CheckpointPart part = Part(1, 10);
    part.set_file(file);
    EXPECT_FALSE(collector.Wants(part)) << file;
    EXPECT_TRUE(collector.Add(part).empty());
  }
  EXPECT_TRUE(collector.Add(Part(0, 10)).empty());
  CheckpointPart same = Part(1, 10);
  same.set_file("lane-0");
  EXPECT_FALSE(collector.Wants(same)) << "two parts with one file";
  EXPECT_EQ(collector.Add(Part(1, 10)).size(), 1u);
}

TEST(CheckpointCollector, TakesTheInitialWeightsWhereTheJobWritesThem) {
  CheckpointCollector collector(1, 0, std::nullopt);
  const auto whole = collector.Add(Part(0, 0));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].version, 0u);
  EXPECT_TRUE(collector.Add(Part(0, 0)).empty());
  EXPECT_EQ(collector.Add(Part(0, 1)).size(), 1u);
}

TEST(CheckpointCollector, GathersTwoVersionsAtOnce) {
  CheckpointCollector collector(2, 0, 0);
  EXPECT_TRUE(collector.Add(Part(0, 1)).empty());
  EXPECT_TRUE(collector.Add(Part(0, 2)).empty());
  EXPECT_EQ(collector.Add(Part(1, 1)).size(), 1u);
  EXPECT_EQ(collector.Add(Part(1, 2)).size(), 1u);
}

TEST(CheckpointCollector, FoldsLanesClocksToTheLowestAndRefusesAnyOtherNumberOfThem) {
  CheckpointCollector collector(2, 3, 0);
  const auto with_clocks = [](CheckpointPart part, const std::vector<uint64_t>& clocks) {
    part.mutable_clocks()->Assign(clocks.begin(), clocks.end());
    return part;
  };
  EXPECT_TRUE(collector.Add(with_clocks(Part(0, 4), {5, 3, 4})).empty());
  EXPECT_TRUE(collector.Add(with_clocks(Part(1, 4), {5, 3})).empty());
  EXPECT_TRUE(collector.Add(Part(1, 4)).empty());
  const auto whole = collector.Add(with_clocks(Part(1, 4), {6, 2, 4}));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].clocks, (std::vector<uint64_t>{5, 2, 4}));
}

TEST(CheckpointCollector, LanesWithoutSegmentsHaveNoPart) {
  CheckpointCollector collector(3, 0, std::nullopt);
  const std::vector<uint32_t> owners = {2, 0, 2, 2};
  collector.SetPlacement(7, owners);
  CheckpointPart part;
  part.set_placement(7);
  part.set_version(10);
  part.set_lane(1);
  part.set_file("lane-1");
  EXPECT_FALSE(collector.Wants(part));
  part.set_lane(0);
  EXPECT_TRUE(collector.Add(part).empty());
  part.set_lane(2);
  part.set_file("lane-2");
  const std::vector<CollectedCheckpoint> whole = collector.Add(part);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].parts.size(), 2u);
}

CheckpointPart Residual(uint32_t virtual_worker, uint64_t version, const std::string& file) {
  CheckpointPart part;
  part.set_virtual_worker(virtual_worker);
  part.set_version(version);
  part.set_file(file);
  return part;
}
CheckpointPart Residual(uint32_t virtual_worker, uint64_t version) {
  return Residual(virtual_worker, version, "residual-" + std::to_string(virtual_worker));
}

TEST(CheckpointCollector, AwaitsAPartOfEachVirtualWorkerThatIsCarried) {
  CheckpointCollector collector(1, 0, 0);
  EXPECT_FALSE(collector.Wants(Residual(0, 10))) << "no part of the job's checkpoints";
  EXPECT_TRUE(collector.SetCarried({true, false, true}).empty());
  EXPECT_FALSE(collector.Wants(Residual(3, 10))) << "there is none";
  EXPECT_TRUE(collector.Add(Residual(0, 10)).empty());
  EXPECT_FALSE(collector.AwaitsResiduals());
  EXPECT_TRUE(collector.Add(Part(0, 10)).empty());
  EXPECT_TRUE(collector.AwaitsResiduals());
  EXPECT_TRUE(collector.Add(Residual(0, 10)).empty());
  const auto whole = collector.Add(Residual(2, 10, ""));
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(whole[0].parts.size(), 2u) << "one has nothing";
  EXPECT_EQ(whole[0].parts[0].file(), "lane-0");
  EXPECT_EQ(whole[0].parts[1].virtual_worker(), 0u);
  EXPECT_FALSE(collector.AwaitsResiduals());
}

TEST(CheckpointCollector, AVirtualWorkerThatIsGoneHoldsNothingUp) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (const uint64_t version : {5, 6}) {
    EXPECT_TRUE(collector.Add(Part(0, version)).empty());
    EXPECT_TRUE(collector.Add(Residual(1, version)).empty());
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
  EXPECT_EQ(collector.Add(Part(0, 0)).size(), 1u);
}

TEST(CheckpointCollector, PartWithFileReplacesPartWithoutFile) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true});
  EXPECT_TRUE(collector.Add(Residual(0, 4, "")).empty());
  EXPECT_TRUE(collector.Add(Residual(0, 4, "first")).empty());
  EXPECT_FALSE(collector.Wants(Residual(0, 4, "second")));
  EXPECT_FALSE(collector.Wants(Residual(0, 4, "")));
  const auto whole = collector.Add(Part(0, 4));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].parts.at(1).file(), "first");
}

TEST(CheckpointCollector, ResidualsStayWhenSegmentsMoveAndGoWhenTheyAreVoid) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (const uint64_t version : {4, 5}) {
    for (const uint32_t v : {0, 1}) EXPECT_TRUE(collector.Add(Residual(v, version)).empty());
  }
  collector.OnMoved(0, 4);
  const std::vector<uint32_t> owners = {0};
  collector.SetPlacement(2, owners);
  CheckpointPart part = Part(0, 4);
  part.set_placement(2);
  EXPECT_EQ(collector.Add(part).size(), 1u);
  part.set_version(5);
  EXPECT_TRUE(collector.Add(part).empty());
  EXPECT_EQ(collector.Add(Residual(0, 5)).size(), 1u);
}

TEST(CheckpointCollector, ResidualsAloneHoldNoNewerCheckpointUp) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (uint64_t version = 1; version <= 3 * CheckpointCollector::kMaxOpen; ++version) {
    EXPECT_TRUE(collector.Wants(Residual(0, version)));
    EXPECT_TRUE(collector.Add(Residual(0, version)).empty());
  }
  constexpr uint64_t kNewest = 4 * CheckpointCollector::kMaxOpen;
  EXPECT_TRUE(collector.Add(Part(0, kNewest)).empty());
  EXPECT_TRUE(collector.Add(Residual(0, kNewest)).empty());
  EXPECT_EQ(collector.Add(Residual(1, kNewest)).size(), 1u);
}

TEST(CheckpointCollector, LaterPartCompletesEarlierVersionsOfVirtualWorker) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  for (const uint64_t version : {5, 10, 15}) {
    EXPECT_TRUE(collector.Add(Part(0, version)).empty());
    EXPECT_TRUE(collector.Add(Residual(0, version)).empty());
  }
  std::vector<CollectedCheckpoint> whole = collector.Add(Residual(1, 15, ""));
  ASSERT_EQ(whole.size(), 3u);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i].version, 5 * (i + 1));
    EXPECT_EQ(whole[i].parts.size(), 2u);
  }
  EXPECT_TRUE(collector.IsOld(15));
  EXPECT_FALSE(collector.IsOld(16));

  // Steps that the new owner repeats need their residual parts again.
  EXPECT_TRUE(collector.Add(Residual(1, 30)).empty());
  collector.OnMoved(1, 20);
  EXPECT_TRUE(collector.Add(Part(0, 20)).empty());
  EXPECT_TRUE(collector.Add(Residual(0, 20)).empty());
  EXPECT_EQ(collector.Add(Residual(1, 20)).size(), 1u);
}

TEST(CheckpointCollector, AVirtualWorkerFarBehindHoldsNoNewerCheckpointUp) {
  CheckpointCollector collector(1, 0, 0);
  collector.SetCarried({true, true});
  EXPECT_TRUE(collector.Add(Residual(1, 1, "")).empty());
  uint64_t newest_whole = 0;
  for (uint64_t version = 2; version <= 3 * CheckpointCollector::kMaxAwaited; ++version) {
    ASSERT_TRUE(collector.Wants(Part(0, version)));
    for (const CheckpointPart& part : {Part(0, version), Residual(0, version)}) {
      for (const CollectedCheckpoint& whole : collector.Add(part)) {
        EXPECT_EQ(whole.parts.size(), 2u) << "of virtual worker 1 there is nothing";
        EXPECT_GT(whole.version, newest_whole);
        newest_whole = whole.version;
      }
    }
  }
  EXPECT_EQ(newest_whole, 2 * CheckpointCollector::kMaxAwaited);
  const std::vector<CollectedCheckpoint> whole =
      collector.Add(Residual(1, 3 * CheckpointCollector::kMaxAwaited));
  ASSERT_EQ(whole.size(), CheckpointCollector::kMaxAwaited);
  EXPECT_EQ(whole.back().version, 3 * CheckpointCollector::kMaxAwaited);
  EXPECT_EQ(whole.back().parts.size(), 3u);
}

TEST(CheckpointCollector, DropsWhatALaneHasPassed) {
  CheckpointCollector collector(2, 0, 0);
  for (uint64_t version = 1; version <= 100; ++version) {
    EXPECT_TRUE(collector.Add(Part(0, version)).empty());
  }
  EXPECT_TRUE(collector.Add(Part(1, 150)).empty());
  EXPECT_FALSE(collector.Wants(Part(0, 100))) << "lane 1 has passed it";
  EXPECT_FALSE(collector.Wants(Part(0, 149)));
  EXPECT_TRUE(collector.Wants(Part(0, 151)));
  EXPECT_TRUE(collector.Add(Part(0, 151)).empty());
  EXPECT_FALSE(collector.Wants(Part(1, 150))) << "lane 0 has passed it";
  const auto whole = collector.Add(Part(1, 151));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].version, 151u);
}

TEST(CheckpointCollector, BeginsAnewWithAnotherPlacement) {
  CheckpointCollector collector(2, 0, 0);
  EXPECT_TRUE(collector.Add(Part(1, 10)).empty());
  const std::vector<uint32_t> owners = {0, 1};
  collector.SetPlacement(2, owners);
  for (const uint32_t lane : {0, 1}) {
    CheckpointPart part = Part(lane, 5);
    part.set_placement(2);
    ASSERT_TRUE(collector.Wants(part)) << "lanes take their snapshots again";
    EXPECT_EQ(collector.Add(part).size(), lane);
  }
}

// A lane that does not report does not hold up others.
TEST(CheckpointCollector, WhenItIsFullTheOldestGivesWay) {
  CheckpointCollector collector(2, 0, 0);
  constexpr uint64_t kVersions = CheckpointCollector::kMaxOpen + 10;
  for (uint64_t version = 1; version <= kVersions; ++version) {
    ASSERT_TRUE(collector.Wants(Part(0, version)));
    EXPECT_TRUE(collector.Add(Part(0, version)).empty());
  }
  EXPECT_FALSE(collector.Wants(Part(1, 10)));
  EXPECT_EQ(collector.Add(Part(1, 11)).size(), 1u);
  EXPECT_EQ(collector.Add(Part(1, kVersions)).size(), 1u);
}

}  // namespace
}  // namespace tug
