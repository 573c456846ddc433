#include "experiment/scheduling_report.h"

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "experiment/timeline_svg.h"
#include "experiment/well_formed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Row = TimelineSpan::Row;

Timeline SomeTimeline() {
  return {.spans = {{Row::kBackward, 1, 0, 0.1},
                    {Row::kBackward, 0, 0.1, 0.2},
                    {Row::kPush, 1, 0.1, 0.15},
                    {Row::kPull, 1, 0.15, 0.25},
                    {Row::kForward, 0, 0.4, 0.5},
                    {Row::kForward, 7, 0.5, 0.6}},  // a block without a name
          .seconds = 0.6};
}

SchedulingResults Example() {
  SchedulingCase c;
  c.profile = "a<b>&\"c\"";
  c.blocks = {"first<&>", "last"};
  c.policies = {{.policy = "fifo", .steps = {{0.6, 0.7}, {0.2, 0.3}, {0.5, 0.5}}},
                {.policy = "priority", .steps = {{0.5}, {0.1}, {0.5}}}};
  for (PolicyResult& policy : c.policies) policy.timeline = SomeTimeline();
  c.bound = WorkedOutStep{0.45, 0, SomeTimeline()};
  return {.command = "tug --set a='<&>'", .settings = {{"li<nk", "1 & 2"}}, .cases = {c}};
}

TEST(SchedulingReport, IsWellFormedAndEscapesWhatItIsGiven) {
  const std::string page = SchedulingReportHtml(Example());
  ExpectWellFormed(page);
  EXPECT_THAT(page, HasSubstr("a&lt;b&gt;&amp;&quot;c&quot;, ratio 1"));
  EXPECT_THAT(page, HasSubstr("first&lt;&amp;&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>&")));
}

TEST(SchedulingReport, NeedsNothingElse) {
  const std::string page = SchedulingReportHtml(Example());
  for (const char* fetched : {"<script", "src=", "href=", "@import", "url(http"}) {
    EXPECT_THAT(page, Not(HasSubstr(fetched)));
  }
  const std::string without_names = absl::StrReplaceAll(page, {{"http://www.w3.org/2000/svg", ""}});
  EXPECT_THAT(without_names, Not(HasSubstr("http")));
}

TEST(SchedulingReport, IsWellFormedBeforeAnythingIsMeasured) {
  ExpectWellFormed(SchedulingReportHtml({}));
  SchedulingResults results = Example();
  results.cases[0].policies.clear();
  results.cases[0].bound.reset();
  ExpectWellFormed(SchedulingReportHtml(results));
  EXPECT_EQ(StepBarsSvg(results), "");
  results.cases[0].policies = {{.policy = "fifo"}};
  ExpectWellFormed(SchedulingReportHtml(results));
}

TEST(TimelinesSvg, ShowsComputeWaitsAndTheBound) {
  const Timeline timeline = SomeTimeline();
  const std::string svg = TimelinesSvg({{"fifo", &timeline, "note"}}, {"a", "b"}, 0.45);
  EXPECT_THAT(svg, HasSubstr("waits for weights, 200.0 ms"));
  EXPECT_THAT(svg, HasSubstr("backward b, 0.0 to 100.0 ms"));
  EXPECT_THAT(svg, HasSubstr("push b, 100.0 to 150.0 ms"));
  EXPECT_THAT(svg, HasSubstr("class=\"bound\""));
  EXPECT_THAT(TimelinesSvg({{"fifo", &timeline, ""}}, {"a", "b"}, std::nullopt),
              Not(HasSubstr("class=\"bound\"")));
}

TEST(TimelinesSvg, SaysThatThereIsNothingToDraw) {
  const Timeline empty;
  EXPECT_THAT(TimelinesSvg({{"fifo", &empty, ""}, {"none", nullptr, ""}}, {}, 1.0),
              HasSubstr("No timeline"));
}

TEST(BlockColor, TellsBlocksAndPassesApart) {
  EXPECT_NE(BlockColor(0, 16, true), BlockColor(15, 16, true));
  EXPECT_NE(BlockColor(0, 16, true), BlockColor(0, 16, false));
  EXPECT_EQ(BlockColor(0, 1, true), BlockColor(0, 16, true));
}

}  // namespace
}  // namespace tug
