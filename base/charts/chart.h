// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CHARTS_CHART_H_
#define TUG_BASE_CHARTS_CHART_H_

// Charts as SVG. A chart is an area with two axes, and shapes in units of the data: boxes, lines,
// rules, dots and texts, drawn in this order. A picture is a grid of charts.
//
// "Units" are those of the picture. Names, titles and texts are plain: they are escaped here. A
// title is the tooltip of its shape. What is not finite, or not above 0 on a logarithmic axis, is
// not drawn. Functions are pure and thread-safe.
//
// Colours are CSS. A page of pictures, or SvgFile, has a style sheet with these classes, in light
// and dark as it likes: text.name (titles), text.small (numbers, notes), tspan.small, text.block
// and text.waits (in boxes), rect.row (backgrounds), rect.wait, line.grid, line.clear
// (halos), circle.dot, and those that shapes name as their style.

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tug {

struct ChartPoint {
  double x = 0, y = 0;
};

struct ChartRange {
  double begin = 0, end = 0;

  double Middle() const { return (begin + end) / 2; }
};

// Range of a box or rule from one end of an axis to the other.
inline constexpr double kAxisEnd = std::numeric_limits<double>::infinity();
inline constexpr ChartRange kWholeAxis = {-kAxisEnd, kAxisEnd};

struct ChartTick {
  double at = 0;
  std::string text;  // may be empty
  const char* style = "small";
};

struct ChartAxis {
  std::string name;        // below the area: of x on its right, of y on its left; may be empty
  bool log = false;        // logarithmic
  bool from_zero = false;  // the range includes 0
  double margin = 0;  // added to the range at both ends, as a part of it; not below 0 if from_zero
  // From left to right, or from bottom to top. None: what the boxes, lines, rules and dots need.
  std::optional<ChartRange> range;
  std::vector<ChartTick> ticks;  // empty: at about `wanted` round numbers
  int wanted = 8;                // 0: no ticks
  bool grid = false;             // a line across the area at each tick
};

// A rectangle. Without colour and style it is hatched, which marks waiting.
struct ChartBox {
  ChartRange x, y;
  std::string color;
  std::string title;
  std::string text;  // in it, if it fits
  const char* style = "";
};

// Filled: with a faint area down to y = 0.
enum class LineStyle { kSolid, kDashed, kFaint, kFilled };

struct ChartLine {
  std::vector<ChartPoint> points;
  std::string color;
  std::string title;
  LineStyle style = LineStyle::kSolid;
  bool named = false;  // the title also stands at its end
};

enum class RuleEnds { kPlain, kCaps, kHalo };  // caps: of an error bar; halo: visible on any colour

// A straight line from the beginnings of two ranges to their ends; not drawn outside the axes.
struct ChartRule {
  ChartRange x, y;
  const char* style = "";
  RuleEnds ends = RuleEnds::kPlain;
};

struct ChartDot {
  ChartPoint at;
  std::string color;
  std::string title;
  double radius = 4;   // units
  bool faint = false;  // without an edge
};

// A text at a point, moved by some units to the right and down.
struct ChartText {
  ChartPoint at;
  std::string text;
  double right = 8, down = 4;
  const char* anchor = "start";  // "start", "middle" or "end"
  std::string title;
};

struct Chart {
  std::string title, note;  // above the area, the note in faint type; may be empty
  double height = 0;        // of the area, in units
  bool shaded = true;       // the area has a background
  ChartAxis x;
  ChartAxis y = {.grid = true};
  std::vector<ChartBox> boxes;
  std::vector<ChartLine> lines;
  std::vector<ChartRule> rules;
  std::vector<ChartDot> dots;
  std::vector<ChartText> texts;
};

// How charts are arranged: row by row, with `left` units on the left of the first area of a row,
// `right` on the right of the last, `between` from one to the next.
struct ChartGrid {
  double width = 1120;  // of the picture
  size_t columns = 1;
  double left = 66, right = 16, between = 0;
  bool same_x = false;  // one x range for all charts, with numbers only below the last row
  bool same_y = false;  // one y range for all charts
  std::vector<std::pair<std::string, std::string>> legend;  // names and colours, above the charts

  double AreaWidth() const;
};

// An <svg>. A chart whose x or y range is unknown, since it has no shapes, leaves its place blank;
// "" if all charts do.
std::string ChartsSvg(const std::vector<Chart>& charts, const ChartGrid& grid);

// A picture as a file of its own, with a style sheet, and `more` behind the other shapes. "" if it
// is "".
std::string SvgFile(const std::string& svg, const std::string& style, const std::string& more);

// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high], about `wanted` of them;
// at least one if low <= high are finite.
std::vector<double> NiceTicks(double low, double high, int wanted);

// Charts of horizontal bars: rows below one another, whose y axis counts units from the top. Bars
// begin at x = 0.

// A chart without rows.
Chart RowsChart(const std::string& title, const std::string& x_name);

struct RowLook {
  double height = 17, gap = 4;  // units; the gap is below the row
  bool shaded = false;          // the row has a background
  const char* style = "";       // of its name
};

// Adds a row with a name on its left. Returns its y coordinates.
ChartRange AddRow(Chart& chart, const std::string& name, const RowLook& look);

struct BarPart {
  double length = 0;
  std::string color;  // empty: hatched
  std::string title;
};

struct Bar {
  std::string name;                                   // on its left
  std::vector<BarPart> parts;                         // in order
  std::string label;                                  // on its right
  std::vector<std::pair<double, const char*>> marks;  // lines across it: where, and their styles
  std::optional<ChartRange> spread;                   // an error bar
};

void AddBar(Chart& chart, const Bar& bar);

}  // namespace tug

#endif  // TUG_BASE_CHARTS_CHART_H_
