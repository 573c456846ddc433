#include "experiment/sync_results.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

SyncCase Mode(const std::string& text) {
  const auto mode = ParseSyncCase(text);
  EXPECT_TRUE(mode.ok()) << mode.status();
  return mode.value_or(SyncCase{});
}

// Steps every `seconds`; worker 0 computes for `slow` seconds a step, the other for 1.
SyncRun Run(const std::string& mode, StragglerKind straggler, double seconds, double slow) {
  SyncRun run{.mode = Mode(mode), .straggler = straggler};
  for (uint64_t step = 1; step <= 5; ++step) {
    run.figures.steps.push_back({step, static_cast<double>(step) * seconds, 2.0});
  }
  run.figures.workers = {{.virtual_worker = 0,
                          .steps = 5,
                          .seconds = 5 * seconds,
                          .compute_seconds = 5,
                          .straggle_seconds = 5 * (slow - 1)},
                         {.virtual_worker = 1,
                          .steps = 5,
                          .seconds = 5 * seconds,
                          .compute_seconds = 5,
                          .wait_seconds = 5 * (seconds - 1)}};
  return run;
}

SyncPart Example() {
  return {.title = "Throughput",
          .replay = true,
          .virtual_workers = 2,
          .batch_samples = 8,
          .slowdown = 4,
          .runs = {Run("bsp", StragglerKind::kNone, 1, 1), Run("asp", StragglerKind::kNone, 1, 1),
                   Run("bsp", StragglerKind::kPersistent, 4, 4),
                   Run("asp", StragglerKind::kPersistent, 1.6, 4),
                   Run("backup:1", StragglerKind::kPersistent, 1.25, 4),
                   Run("local:16", StragglerKind::kPersistent, 64, 64)}};
}

TEST(SyncCase, IsParsedInBothWaysAndRefusedWithWhatIsKnown) {
  EXPECT_EQ(Mode("ssp:4"), Mode("ssp(4)"));
  EXPECT_EQ(Mode("ssp:4").name, "ssp(4)");
  EXPECT_EQ(Mode("SSP:0").staleness, 0u);
  EXPECT_EQ(Mode("local:16").local_steps, 16u);
  EXPECT_EQ(Mode("local:16").policy, SyncConfig::BSP);
  EXPECT_EQ(Mode("backup(2)").backups, 2u);
  for (const char* text : {"", "ssp", "ssp:", "ssp(4", "ssp:-1", "ssp:65536", "bsp:1", "asp(2)",
                           "backup:0", "local:1", "hogwild"}) {
    const auto mode = ParseSyncCase(text);
    ASSERT_FALSE(mode.ok()) << text;
    EXPECT_THAT(std::string(mode.status().message()), HasSubstr("ssp:S")) << text;
  }
}

TEST(SyncPart, ComparesWithUndisturbedBspAndWithTheBound) {
  const SyncPart part = Example();
  const SyncRun& bsp = part.runs[2];
  EXPECT_DOUBLE_EQ(*part.OfBsp(bsp), 0.25);
  EXPECT_DOUBLE_EQ(*part.Bound(bsp), 0.25);
  EXPECT_DOUBLE_EQ(*part.OfStragglersPace(bsp), 1);
  const SyncRun& asp = part.runs[3];
  EXPECT_DOUBLE_EQ(*part.OfItself(asp), 0.625);
  EXPECT_DOUBLE_EQ(*part.Bound(asp), 1.25 / 2) << "one of two workers, and a quarter of the other";
  EXPECT_DOUBLE_EQ(asp.UpdatesPerSecond(2), 1.25) << "every push is one";
  const SyncRun& backup = part.runs[4];
  EXPECT_DOUBLE_EQ(*part.OfBsp(backup), 0.8);
  EXPECT_FALSE(part.OfItself(backup).has_value()) << "it was not run undisturbed";
  EXPECT_DOUBLE_EQ(part.SamplesAt(backup, 10), 40) << "half of what was computed";
  const SyncRun& local = part.runs[5];
  EXPECT_DOUBLE_EQ(local.BatchesPerSecond(), 0.25);
  EXPECT_DOUBLE_EQ(*part.OfStragglersPace(local), 1);
  EXPECT_DOUBLE_EQ(part.SamplesAt(local, 2), 2 * 16 * 8);
  EXPECT_FALSE(part.Bound(part.runs[0]).has_value());
  EXPECT_DOUBLE_EQ(bsp.WaitShare(), 0.375);
  EXPECT_DOUBLE_EQ(bsp.WaitShareOfMost(), 0.75);
}

TEST(SyncPart, SaysWhatTheFiguresComeTo) {
  EXPECT_THAT(
      Findings(Example()),
      AllOf(Contains(AllOf(HasSubstr("bsp beside a worker 4 times as slow"),
                           HasSubstr("100.0% of the straggler's pace"))),
            Contains(AllOf(HasSubstr("asp beside"), HasSubstr("100.0% of the bound 0.625"))),
            Contains(AllOf(HasSubstr("backup(1) beside"), HasSubstr("80.0% of undisturbed bsp")))));
}

TEST(SyncResults, TableAndJsonHaveALineForEachRun) {
  const SyncResults results = {.command = "tug", .settings = {{"a", "b"}}, .parts = {Example()}};
  const auto table = ResultsTable(results.parts[0]);
  ASSERT_EQ(table.size(), 7u);
  for (const auto& line : table) EXPECT_EQ(line.size(), table[0].size());
  EXPECT_THAT(ResultsMarkdown(results),
              AllOf(HasSubstr("## Throughput"), HasSubstr("| local(16)")));
  const auto json = ResultsJson(results);
  ASSERT_EQ(json["parts"][0]["runs"].size(), 6u);
  EXPECT_EQ(json["parts"][0]["runs"][5]["steps"][4]["samples"], 5 * 16 * 8);
  EXPECT_TRUE(json["parts"][0]["runs"][0]["steps"][0]["loss"].is_null()) << "nothing is learned";
  EXPECT_TRUE(json["parts"][0]["runs"][0]["bound"].is_null());
}

TEST(SyncResults, ATrainingHasLosses) {
  SyncPart part = Example();
  part.replay = false;
  for (SyncRun& run : part.runs) run.figures.evals = {{5, 6, 1.5, true}};
  part.runs[1].figures.evals[0].loss = 1.75;
  EXPECT_EQ(ResultsTable(part)[1].back(), "1.5000");
  EXPECT_THAT(Findings(part),
              Contains(HasSubstr("asp, stragglers: none: final loss 1.7500, +0.2500 against")));
}

}  // namespace
}  // namespace tug
