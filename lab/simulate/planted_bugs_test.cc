// SPDX-License-Identifier: Apache-2.0
// Plants bugs, one at a time; the invariants find each of them. docs/reliability.md lists after how
// many seeds.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "lab/simulate/fault_run.h"

namespace tug {
namespace {

class PlantedBugs : public testing::TestWithParam<PlantedBugName> {};

TEST_P(PlantedBugs, AreFoundWithinFiveHundredSeeds) {
  FaultRuns runs;
  runs.runs = 500;
  runs.plant = GetParam().bug;
  uint64_t seeds = 0;
  std::string found;
  const absl::Status status = RunFaultSeeds(runs, [&](const FaultOutcome& outcome) {
    ++seeds;
    if (!outcome.violations.empty()) found = outcome.violations.front();
    return found.empty();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(found.empty()) << GetParam().text;
  std::printf("%s: found after %lu seeds: %s\n", GetParam().text, seeds, found.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, testing::ValuesIn(kPlantedBugs),
                         [](const auto& bug) { return std::string(bug.param.name); });

}  // namespace
}  // namespace tug
