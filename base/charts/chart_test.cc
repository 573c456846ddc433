// SPDX-License-Identifier: Apache-2.0
#include "base/charts/chart.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// An area of 100 x 100 at (0, 8) without ticks.
const ChartGrid kSmall = {.width = 100, .left = 0, .right = 0};

Chart Small(ChartRange x, ChartRange y) {
  return {.height = 100, .x = {.range = x, .wanted = 0}, .y = {.range = y, .wanted = 0}};
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(ChartsSvg, PlacesShapesByTheirValues) {
  Chart chart = Small({0, 10}, {0, 2});
  chart.boxes = {{{0, 5}, {0, 1}, "red"}};
  chart.lines = {{{{0, 0}, {10, 2}}, "green"}};
  chart.rules = {{{5, 5}, kWholeAxis, "bound"}};
  chart.dots = {{{2.5, 2}, "blue", "", 3}};
  chart.texts = {{{10, 0}, "end", -4, 1, "end"}};
  const std::string svg = ChartsSvg({chart}, kSmall);
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="0.00" y="58.0" width="50.00" height="50.0" fill="red">)"));
  EXPECT_THAT(svg, HasSubstr(R"(d="M0.0,108.0 L100.0,8.0" fill="none" stroke="green")"));
  EXPECT_THAT(svg, HasSubstr(R"(<line x1="50.0" y1="108.0" x2="50.0" y2="8.0" class="bound"/>)"));
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="25.0" cy="8.0" r="3" fill="blue" class="dot">)"));
  EXPECT_THAT(svg, HasSubstr(R"(<text x="96.0" y="109.0" text-anchor="end" class="small">end<)"));
}

TEST(ChartsSvg, EscapesTexts) {
  Chart chart = Small({0, 1}, {0, 1});
  chart.title = "a<b";
  chart.note = "c&d";
  chart.boxes = {{{0, 1}, {0, 1}, "red", "e>f", "<g>"}};
  chart.texts = {{.at = {0, 0}, .text = "i&j", .title = "k&l"}};
  const ChartGrid grid = {.width = 100, .left = 0, .right = 0, .legend = {{"\"h\"", "red"}}};
  EXPECT_THAT(ChartsSvg({chart}, grid),
              AllOf(HasSubstr("a&lt;b"), HasSubstr("c&amp;d"), HasSubstr("<title>e&gt;f</title>"),
                    HasSubstr("&lt;g&gt;"), HasSubstr("&quot;h&quot;"),
                    HasSubstr(">i&amp;j<title>k&amp;l</title></text>")));
}

TEST(ChartsSvg, FitsAxesToShapes) {
  Chart chart{.height = 100, .x = {.from_zero = true}, .y = {.margin = 0.25}};
  chart.dots = {{{4, 10}, "red"}, {{8, 14}, "red"}};
  const std::string svg = ChartsSvg({chart}, {.width = 200, .left = 50, .right = 50});
  EXPECT_THAT(svg, HasSubstr(R"(cx="100.0" cy="91.3")")) << "from 9 to 15";
  EXPECT_THAT(svg, AllOf(HasSubstr(">0<"), HasSubstr(">8<"), HasSubstr(">15<")));
  EXPECT_THAT(svg, Not(HasSubstr(">16<")));
}

TEST(ChartsSvg, HasLogarithmicAxes) {
  Chart chart{.height = 100, .x = {.log = true}, .y = {.log = true}};
  chart.dots = {{{1, 1}, "red"}, {{10, 10}, "red"}, {{100, 100}, "red"}, {{0, -5}, "red"}};
  const std::string svg = ChartsSvg({chart}, kSmall);
  EXPECT_THAT(svg, HasSubstr(R"(cx="50.0" cy="58.0")"));
  EXPECT_EQ(Count(svg, "<circle"), 3u) << "what is not above 0 is left out";
  EXPECT_THAT(svg, AllOf(HasSubstr(">20<"), HasSubstr(">100<"), Not(HasSubstr("nan"))));
}

TEST(ChartsSvg, LeavesOutWhatIsNotFinite) {
  Chart chart{.height = 100};
  chart.lines = {{{{0, 1}, {1, NAN}, {2, INFINITY}, {3, 4}}, "red"}};
  chart.dots = {{{1, NAN}, "red"}};
  const std::string svg = ChartsSvg({chart}, kSmall);
  EXPECT_EQ(Count(svg, "<circle"), 0u);
  EXPECT_EQ(Count(svg, " L"), 1u);
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(ChartsSvg, CutsBoxesAndOmitsRulesOutsideTheAxes) {
  Chart chart = Small({0, 10}, {0, 1});
  chart.boxes = {{{5, 20}, {0, 1}, "red"}, {{11, 20}, {0, 1}, "green"}};
  chart.rules = {{{11, 11}, kWholeAxis, "bound"}, {{10, 10}, kWholeAxis, "end"}};
  const std::string svg = ChartsSvg({chart}, kSmall);
  EXPECT_THAT(svg, AllOf(HasSubstr("width=\"50.00\""), HasSubstr("\"end\""),
                         Not(HasSubstr("green")), Not(HasSubstr("bound"))));
}

TEST(ChartsSvg, ShowsTheTextOfABoxIfItFits) {
  Chart chart = Small({0, 100}, {0, 1});
  chart.boxes = {{{0, 60}, {0, 1}, "red", "", "fits"}, {{60, 70}, {0, 1}, "red", "", "too long"}};
  EXPECT_THAT(ChartsSvg({chart}, kSmall), AllOf(HasSubstr("fits"), Not(HasSubstr("too long"))));
}

TEST(ChartsSvg, SharesAxes) {
  Chart low{.height = 100}, high{.height = 100};
  low.x.from_zero = high.x.from_zero = true;
  low.dots = {{{5, 1}, "red"}};
  high.dots = {{{10, 2}, "red"}};
  const std::string own = ChartsSvg({low, high}, {.width = 100, .left = 0, .right = 0});
  const std::string shared =
      ChartsSvg({low, high}, {.width = 100, .left = 0, .right = 0, .same_x = true});
  EXPECT_THAT(own, Not(HasSubstr("cx=\"50.0\"")));
  EXPECT_THAT(shared, HasSubstr("cx=\"50.0\""));
  EXPECT_EQ(Count(shared, ">10<"), 1u) << "numbers below the last chart only";
}

TEST(ChartsSvg, LeavesPlacesOfEmptyChartsBlank) {
  Chart chart = Small({0, 1}, {0, 1});
  chart.dots = {{{0, 0}, "red"}};
  const ChartGrid grid = {.width = 200, .columns = 2, .left = 0, .right = 0};
  EXPECT_EQ(ChartsSvg({}, grid), "");
  EXPECT_EQ(ChartsSvg({Chart(), RowsChart("a", "b")}, grid), "");
  EXPECT_THAT(ChartsSvg({Chart(), chart}, grid), HasSubstr("cx=\"100.0\""));
}

TEST(ChartsSvg, SlantsLongNamesBelowNarrowSlots) {
  Chart chart = Small({0, 2}, {0, 1});
  chart.dots = {{{0, 0}, "red"}};
  chart.x.ticks = {{0.5, "a"}, {1.5, "b"}};
  EXPECT_THAT(ChartsSvg({chart}, kSmall), Not(HasSubstr("rotate")));
  chart.x.ticks[1].text = "a long name";
  EXPECT_THAT(ChartsSvg({chart}, kSmall), HasSubstr("rotate(-30"));
}

TEST(ChartsSvg, NamesLinesOneBelowAnother) {
  Chart chart = Small({0, 1}, {0, 1});
  chart.lines = {{{{0, 0}, {1, 0.5}}, "red", "first", LineStyle::kSolid, true},
                 {{{0, 1}, {1, 0.5}}, "blue", "second", LineStyle::kSolid, true},
                 {{{0, 1}, {1, 1}}, "blue", "third"}};
  const std::string svg = ChartsSvg({chart}, kSmall);
  EXPECT_THAT(svg, AllOf(HasSubstr(R"(y="62.0" text-anchor="start" style="fill:red">first<)"),
                         HasSubstr(R"(y="75.5" text-anchor="start" style="fill:blue">second<)"),
                         Not(HasSubstr(">third</text>"))));
}

TEST(RowsChart, HasBarsWithPartsMarksAndLabels) {
  Chart chart = RowsChart("title", "ms");
  AddBar(chart, {.name = "one",
                 .parts = {{3, "red", "computes"}, {1, "", "waits"}},
                 .label = "4 ms",
                 .marks = {{8, "bound"}},
                 .spread = ChartRange{3, 5}});
  AddRow(chart, "two", {.height = 20, .gap = 0, .shaded = true});
  EXPECT_EQ(chart.height, 17 + 4 + 20);
  const std::string svg = ChartsSvg({chart}, {.width = 200, .left = 100, .right = 20});
  EXPECT_THAT(svg, HasSubstr(R"(x="100.00" y="28.0" width="30.00" height="17.0" fill="red")"));
  EXPECT_THAT(svg, HasSubstr(R"(x="130.00" y="28.0" width="10.00" height="17.0" class="wait")"));
  EXPECT_THAT(svg, HasSubstr(R"(x1="180.0" y1="28.0" x2="180.0" y2="47.0" class="bound")"));
  EXPECT_THAT(svg, HasSubstr(R"(<text x="188.0" y="40.5" text-anchor="start" class="small">4 ms)"));
  EXPECT_EQ(Count(svg, "class=\"range\""), 3u) << "an error bar and its caps";
  EXPECT_THAT(svg, HasSubstr(R"(y="49.0" width="80.00" height="20.0" class="row")"));
}

TEST(SvgFile, HasAStyleOfItsOwn) {
  EXPECT_EQ(SvgFile("<svg>\n<g/></svg>\n", "a{}", "<h/>"),
            "<svg>\n<style>a{}</style>\n<h/>\n\n<g/></svg>\n");
  EXPECT_EQ(SvgFile("", "a{}", ""), "");
}

TEST(NiceTicks, AreRoundAndInside) {
  EXPECT_EQ(NiceTicks(0, 2000, 8), (std::vector<double>{0, 500, 1000, 1500, 2000}));
  const std::vector<double> ticks = NiceTicks(1.37, 4.21, 7);
  ASSERT_EQ(ticks.size(), 6u);
  EXPECT_NEAR(ticks.front(), 1.5, 1e-12);
  EXPECT_NEAR(ticks.back(), 4.0, 1e-12);
}

TEST(NiceTicks, HoldWhenThereIsNoRange) {
  EXPECT_EQ(NiceTicks(3, 3, 5), (std::vector<double>{3}));
  EXPECT_TRUE(NiceTicks(0, INFINITY, 5).empty());
  EXPECT_TRUE(NiceTicks(2, 1, 5).empty());
}

}  // namespace
}  // namespace tug
