// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/part_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tug {
namespace {

using ::testing::ElementsAre;

void AddVersions(PartReports& reports, uint64_t begin, uint64_t end) {
  for (uint64_t version = begin; version < end; ++version) {
    CheckpointPart part;
    part.set_version(version);
    reports.Add(part);
  }
}

std::vector<uint64_t> Versions(const PartReports& reports) {
  std::vector<uint64_t> versions;
  for (const CheckpointPart& part : reports.parts()) versions.push_back(part.version());
  return versions;
}

TEST(PartReports, KeepsWhatNobodyHasHeardAndRepeatsTheNewest) {
  PartReports reports;
  AddVersions(reports, 1, 101);
  EXPECT_EQ(reports.parts().size(), 100u) << "of one heartbeat";
  reports.OnHeard(97);
  EXPECT_THAT(Versions(reports), ElementsAre(93, 94, 95, 96, 97, 98, 99, 100));
  AddVersions(reports, 101, 104);
  EXPECT_THAT(Versions(reports), ElementsAre(96, 97, 98, 99, 100, 101, 102, 103));
  AddVersions(reports, 104, 110);
  EXPECT_EQ(reports.parts().front().version(), 98u) << "97 was the newest that was heard";
  reports.OnHeard(109);
  EXPECT_EQ(reports.parts().front().version(), 102u);
}

TEST(PartReports, HoldsSoManyWhileNobodyAnswers) {
  PartReports reports;
  AddVersions(reports, 1, 2 * PartReports::kMost + 1);
  EXPECT_EQ(reports.parts().size(), PartReports::kMost);
  EXPECT_EQ(reports.parts().back().version(), 2 * PartReports::kMost);
}

TEST(PartReports, DropsNewerVersionsAndTakesThemAgain) {
  PartReports reports;
  AddVersions(reports, 1, 6);
  reports.OnHeard(5);
  reports.EraseAfter(3);
  EXPECT_THAT(Versions(reports), ElementsAre(1, 2, 3));
  AddVersions(reports, 4, 20);
  EXPECT_EQ(reports.parts().front().version(), 4u) << "no heartbeat has carried these 16";
  reports.Clear();
  EXPECT_THAT(Versions(reports), ElementsAre());
}

}  // namespace
}  // namespace tug
