// Scenarios drawn from seeds: what must hold, holds.

#include "simulate/fault_run.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tug {
namespace {

TEST(FaultRun, NoInvariantIsBroken) {
  FaultRuns runs;
  runs.first_seed = 1;
  runs.runs = 1000;
  runs.jobs = 2;
  std::set<uint64_t> seen;
  const absl::Status status = RunFaultSeeds(runs, [&](const FaultOutcome& outcome) {
    EXPECT_TRUE(seen.insert(outcome.seed).second);
    for (const std::string& violation : outcome.violations) {
      ADD_FAILURE() << "seed " << outcome.seed << ": " << violation;
    }
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen.size(), runs.runs);
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
