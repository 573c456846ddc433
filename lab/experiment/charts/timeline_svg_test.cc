// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/timeline_svg.h"

#include <optional>
#include <string>

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
