// SPDX-License-Identifier: Apache-2.0
// Scenarios drawn from seeds break no invariant.

#include "lab/simulate/fault_run.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

#include "absl/time/clock.h"

namespace tug {
namespace {

constexpr uint64_t kSeeds = 500;  // per quarter

// In quarters, for four shards, with seeds from the clock: a failure names the command that repeats
// it.
class FaultRunOfTheClock : public testing::TestWithParam<int> {};

TEST_P(FaultRunOfTheClock, BreaksNoInvariant) {
  FaultRuns runs;
  runs.first_seed = static_cast<uint64_t>(absl::ToUnixMicros(absl::Now()));
  runs.runs = kSeeds;
  std::printf("tug simulate faults --seed %lu --runs %lu\n", runs.first_seed, runs.runs);
  std::set<uint64_t> seen;
  uint64_t faults = 0, resumed = 0;
  const absl::Status status = RunFaultSeeds(runs, [&](const FaultOutcome& outcome) {
    EXPECT_TRUE(seen.insert(outcome.seed).second);
    for (const std::string& violation : outcome.violations) {
      ADD_FAILURE() << "tug simulate faults --seed " << outcome.seed << " --trace: " << violation;
    }
    for (const uint64_t of_kind : outcome.faults) faults += of_kind;
    resumed += outcome.resumed;
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen.size(), kSeeds);
  EXPECT_GT(faults, kSeeds);
  EXPECT_GT(resumed, kSeeds / 50);
}

INSTANTIATE_TEST_SUITE_P(Quarters, FaultRunOfTheClock, testing::Range(1, 5));

// A seed gives another run whenever a draw changes, so each cause has a unit test too, and a
// conjunction if it needed rare conditions. docs/reliability.md, "What it has found".
struct BrokenOnce {
  uint64_t seed;
  const char* what;
  Conjunction conjunction = Conjunction::kDrawn;
};
constexpr BrokenOnce kBrokenOnce[] = {
    {3888, "more lanes than segments: no whole checkpoint"},
    {8426, "a worker that was asked to leave waited to report a step that was put back"},
    {9315, "SHRINK: lanes went by the virtual workers of the view before"},
    {9974, "WAIT: nobody took over from a worker that left"},
    {35976, "SHRINK: as 9315"},
    {53603, "a check: an applied update that nobody was told of"},
    {58340, "SHRINK: a push after its clock was sealed, and a change of placement"},
    {95292, "SHRINK: as 58340"},
    {1095595, "a received push was repeated without its frames: the job hung"},
    {795469851, "the same, and the lane told people of a message of the wrong size"},
    {50001183, "the same"},
    {385, "the same, with a codec in all jobs and no memory"},
    {71, "the same", Conjunction::kFramesWithoutMemory},
    {84, "the same", Conjunction::kFramesWithoutMemory},
    {111, "the same", Conjunction::kFramesWithoutMemory},
    {1007858, "a check compared two steps; and a stopped job that went back said \"done\""},
    {1073126, "a check compared two steps"},
    {674, "a stopped job that went back said that it had ended at a later step"},
    {741, "the same"},
    {2, "the same", Conjunction::kStopWhileGoingBack},
    {4, "the same", Conjunction::kStopWhileGoingBack},
    {84, "patience without a bound: a step took more than a minute", Conjunction::kLossy},
    {143, "the same", Conjunction::kLossy},
    {1468, "lanes without memory, a tenth lost: slow, and no hang", Conjunction::kLossy},
    {913, "WAIT: a step that nobody reported held up what the job said it had done"},
    {920, "the same"},
    {2763, "a check: a coordinator that stands still starts the job late"},
    {2615, "WAIT: a node that had left by itself was not started again"},
    {1, "the same", Conjunction::kLeavesWhileWaiting},
    {2, "the same", Conjunction::kLeavesWhileWaiting},
    {450, "a server asked to go, another one was lost, and neither was started again"},
    {1204, "a job waited for a lost server and for who had come in its place"},
    {662, "the same", Conjunction::kStopWhileGoingBack},
    {1795864172, "the same, once the first one that had left was known to have gone"},
    {1795866786, "a server was let go, and the one that was to stay was lost already"},
    {1795935230212886433, "the same for workers, in a job that kept running"},
    {1795975601441477276,
     "a worker kept its last residuals for itself until weights of a lost server"},
    {1795867546, "WAIT: a worker that had been let go counted as lost"},
    {1795869966, "WAIT: nobody took what was left when the job wanted one worker less"},
    {1795844702950632, "short pauses of the coordinator added up to the loss of a worker"},
    {11, "the same", Conjunction::kShortPauses},
    {465, "the same", Conjunction::kShortPauses},
};

TEST(FaultRun, SeedsThatBrokeAnInvariantOnceDoNotAgain) {
  for (const BrokenOnce& once : kBrokenOnce) {
    const Scenario scenario = MakeScenario(once.seed, once.conjunction);
    for (const std::string& violation : FaultRunner().Run(scenario).violations) {
      ADD_FAILURE() << "seed " << once.seed << " (" << once.what << "): " << violation;
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
    EXPECT_EQ(first.rollbacks, second.rollbacks);
  }
}

}  // namespace
}  // namespace tug
