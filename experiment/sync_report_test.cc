#include "experiment/sync_report.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "experiment/sync_charts.h"
#include "experiment/well_formed.h"
#include "experiment/worker_timeline_svg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SyncRun SomeRun(const SyncCase& mode, StragglerKind straggler) {
  SyncRun run{.mode = mode, .straggler = straggler};
  for (uint64_t step = 1; step <= 100; ++step) {
    const double x = static_cast<double>(step);
    run.figures.steps.push_back({step, x, 1 + std::exp(-x / 20)});
  }
  run.figures.evals = {{50, 50, 1.4, false}, {100, 100, 1.2, true}};
  for (uint32_t vw = 0; vw < 2; ++vw) {
    run.figures.workers.push_back({.virtual_worker = vw,
                                   .steps = 100,
                                   .seconds = 100,
                                   .compute_seconds = 50,
                                   .wait_seconds = 30.0 * vw,
                                   .straggle_seconds = 20});
    run.timeline.push_back({vw, {{1, {0, 1}, {{0.5, 0.75}}}, {2, {1, 2}, {}}}});
  }
  run.figures.staleness = {1, 2, 3, 0};
  return run;
}

SyncResults Example() {
  const SyncCase bsp{.name = "bsp"};
  const SyncCase odd{.name = "a<b>&\"c\"", .policy = SyncConfig::ASP};
  SyncPart part{.title = "t<i>tle", .about = "a & b", .virtual_workers = 2, .slowdown = 4};
  for (const StragglerKind s :
       {StragglerKind::kNone, StragglerKind::kPersistent, StragglerKind::kPauses}) {
    part.runs.push_back(SomeRun(bsp, s));
    part.runs.push_back(SomeRun(odd, s));
  }
  return {.command = "tug --set a='<&>'", .settings = {{"li<nk", "1 & 2"}}, .parts = {part}};
}

TEST(SyncReport, IsOneWellFormedPageThatFetchesNothing) {
  const std::string page = SyncReportHtml(Example());
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(HasSubstr("Who waits where"), HasSubstr("Staleness"), HasSubstr("Loss"),
                          HasSubstr("waits for weights"), HasSubstr("a&lt;b&gt;&amp;")));
  const std::string plain =
      absl::StrReplaceAll(page, {{"xmlns=\"http://www.w3.org/2000/svg\"", ""}});
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("http")), Not(HasSubstr("<script")), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
}

TEST(SyncReport, AReplayHasNoLossesAndBspNoStaleness) {
  SyncResults results = Example();
  results.parts[0].replay = true;
  EXPECT_EQ(LossPanelsSvg(results.parts[0]), "");
  results.parts[0].runs = {SomeRun(SyncCase{.name = "bsp"}, StragglerKind::kNone)};
  results.parts[0].runs[0].timeline.clear();
  EXPECT_EQ(StalenessSvg(results.parts[0]), "");
  const std::string page = SyncReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("Who waits where")), HasSubstr("Speed")));
}

TEST(SyncReport, IsAPageBeforeAnythingIsMeasured) {
  ExpectWellFormed(SyncReportHtml({}));
  SyncResults results = Example();
  results.parts[0].runs.clear();
  ExpectWellFormed(SyncReportHtml(results));
}

TEST(SyncReport, ALossThatIsNotFiniteEndsItsLine) {
  SyncResults results = Example();
  SyncRun& run = results.parts[0].runs[1];
  for (size_t i = 50; i < 100; ++i) {
    run.figures.steps[i].loss = std::numeric_limits<double>::quiet_NaN();
  }
  run.figures.evals.back().loss = std::numeric_limits<double>::quiet_NaN();
  const std::string page = SyncReportHtml(results);
  ExpectWellFormed(page);
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(WorkerTimelinesSvg, EndsWithTheSlowestWorkersSteps) {
  const std::vector<WorkerTimeline> workers = {
      {0, {{1, {0, 0.4}, {}}, {2, {0.4, 0.8}, {}}}},
      {1, {{1, {0, 0.1}, {}}, {2, {0.1, 0.2}, {{0.1, 0.15}}}, {3, {0.9, 1}, {}}}}};
  const std::string svg = WorkerTimelinesSvg({{"asp", "", &workers}}, 2, 0);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, AllOf(HasSubstr("slowstep"), HasSubstr("step 2 waits for weights, 50.0 ms"),
                         Not(HasSubstr("step 3"))))
      << "it begins after the slow worker's second";
  EXPECT_EQ(WorkerTimelinesSvg({}, 2, 0), "");
}

}  // namespace
}  // namespace tug
