// Scenarios drawn from seeds: what must hold, holds. In two halves, for two shards.

#include "simulate/fault_run.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tug {
namespace {

constexpr uint64_t kSeeds = 500;  // of each half

void RunSeedsFrom(uint64_t first_seed) {
  FaultRuns runs;
  runs.first_seed = first_seed;
  runs.runs = kSeeds;
  std::set<uint64_t> seen;
  uint64_t faults = 0;
  const absl::Status status = RunFaultSeeds(runs, [&](const FaultOutcome& outcome) {
    EXPECT_TRUE(seen.insert(outcome.seed).second);
    for (const std::string& violation : outcome.violations) {
      ADD_FAILURE() << "tug simulate faults --seed " << outcome.seed << ": " << violation;
    }
    for (const uint64_t of_kind : outcome.faults) faults += of_kind;
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen.size(), kSeeds);
  EXPECT_GT(faults, kSeeds);
}

TEST(FaultRun, NoInvariantIsBrokenInTheFirstHalf) { RunSeedsFrom(1); }
TEST(FaultRun, NoInvariantIsBrokenInTheSecondHalf) { RunSeedsFrom(1 + kSeeds); }

// docs/reliability.md, "What it has found".
TEST(FaultRun, SeedsThatBrokeAnInvariantOnceDoNotAgain) {
  for (const uint64_t seed : {3888, 8426, 9315, 9974, 35976, 53603, 58340, 95292}) {
    for (const std::string& violation : FaultRunner().Run(seed).violations) {
      ADD_FAILURE() << "tug simulate faults --seed " << seed << ": " << violation;
    }
  }
}

TEST(FaultRun, ReplaysFromItsSeed) {
  FaultRunner runner;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const FaultOutcome first = runner.Run(seed);
    const FaultOutcome second = FaultRunner().Run(seed);
    EXPECT_EQ(first.messages, second.messages) << "seed " << seed;
    EXPECT_EQ(first.faults, second.faults);
    EXPECT_EQ(first.timelines, second.timelines);
  }
}

}  // namespace
}  // namespace tug
