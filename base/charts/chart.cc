// SPDX-License-Identifier: Apache-2.0
#include "base/charts/chart.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"

namespace tug {
namespace {

constexpr double kTitleHeight = 28, kNoTitle = 8, kRowSpace = 12;
constexpr double kTickTexts = 22, kAxisNames = 17;  // heights below an area
constexpr double kMaxSlanted = 120;                 // height of slanted texts
constexpr double kLetter = 6.6;                     // approximate width
constexpr double kLineHeight = 13.5, kLegendHeight = 20;
constexpr double kCap = 4;

std::string Attribute(const char* name, const std::string& value) {
  return value.empty() ? "" : absl::StrCat(" ", name, "=\"", value, "\"");
}

std::string TitleOf(const std::string& title) {
  return title.empty() ? "" : absl::StrCat("<title>", XmlEscaped(title), "</title>");
}

std::string SvgText(double x, double y, const char* anchor, const std::string& attributes,
                    const std::string& text, const std::string& title = "") {
  if (text.empty()) return "";
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s%s</text>\n", x, y,
                         anchor, attributes, XmlEscaped(text), TitleOf(title));
}

std::string SvgRect(const ChartRange& x, const ChartRange& y, const std::string& attributes,
                    const std::string& title) {
  return absl::StrFormat("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"%s>%s</rect>\n",
                         x.begin, y.begin, x.end - x.begin, y.end - y.begin, attributes,
                         TitleOf(title));
}

std::string SvgLine(const ChartRange& x, const ChartRange& y, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
                         x.begin, y.begin, x.end, y.end, style);
}

// The values of all shapes on the x axis, or on the y axis.
std::vector<double> ValuesOf(std::span<const Chart> charts, bool on_x) {
  std::vector<double> values;
  const auto add_range = [&](const auto& shape) {
    const ChartRange& range = on_x ? shape.x : shape.y;
    values.insert(values.end(), {range.begin, range.end});
  };
  const auto add_point = [&](const ChartPoint& at) { values.push_back(on_x ? at.x : at.y); };
  for (const Chart& chart : charts) {
    for (const ChartBox& box : chart.boxes) add_range(box);
    for (const ChartRule& rule : chart.rules) add_range(rule);
    for (const ChartDot& dot : chart.dots) add_point(dot.at);
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) add_point(point);
    }
  }
  return values;
}

bool IsOn(const ChartAxis& axis, double value) {
  return std::isfinite(value) && (!axis.log || value > 0);
}

double OnScale(const ChartAxis& axis, double value) { return axis.log ? std::log(value) : value; }

// None: no shape needs one.
std::optional<ChartRange> RangeOf(const ChartAxis& axis, const std::vector<double>& values) {
  if (axis.range.has_value()) return axis.range;
  double low = kAxisEnd, high = -kAxisEnd;
  for (const double value : values) {
    if (!IsOn(axis, value)) continue;
    low = std::min(low, OnScale(axis, value));
    high = std::max(high, OnScale(axis, value));
  }
  if (low > high) return std::nullopt;
  if (axis.from_zero) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  const double margin = high > low ? (high - low) * axis.margin : 0.5;
  high += margin;
  if (!axis.from_zero || low < 0) low -= margin;
  if (axis.log) return ChartRange{std::exp(low), std::exp(high)};
  return ChartRange{low, high};
}

// 1, 2 and 5 times powers of ten; only the powers if that is too many.
std::vector<double> LogTicks(const ChartRange& range) {
  const bool many = range.end / range.begin > 3000;
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(range.begin))); power <= range.end;
       power *= 10) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double tick = power * times;
      if ((many && times > 1) || tick < range.begin * 0.999 || tick > range.end * 1.001) continue;
      ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<ChartTick> TicksOf(const ChartAxis& axis, const ChartRange& range) {
  if (!axis.ticks.empty() || axis.wanted == 0) return axis.ticks;
  std::vector<ChartTick> ticks;
  for (const double at :
       axis.log ? LogTicks(range) : NiceTicks(range.begin, range.end, axis.wanted)) {
    ticks.push_back({at, std::abs(at) < 1e6 ? absl::StrFormat("%g", at + 0.0)  // no -0
                                            : absl::StrFormat("%gM", at * 1e-6)});
  }
  return ticks;
}

// Height that slanted texts of an x axis need; 0: they need not be slanted.
double SlantedHeight(const ChartAxis& axis, double width) {
  size_t longest = 0;
  for (const ChartTick& tick : axis.ticks) longest = std::max(longest, tick.text.size());
  const double length = kLetter * static_cast<double>(longest);
  const bool fits = length * static_cast<double>(axis.ticks.size()) <= width;
  return fits ? 0 : std::min(kMaxSlanted, length / 2);
}

double HeightBelow(const Chart& chart, double width) {
  const bool ticks = !chart.x.ticks.empty() || chart.x.wanted > 0;
  const bool names = !chart.x.name.empty() || !chart.y.name.empty();
  return (ticks ? kTickTexts + SlantedHeight(chart.x, width) : 0) + (names ? kAxisNames : 0);
}

// Where the values of an axis are in the picture.
struct Scale {
  const ChartAxis& axis;
  ChartRange range, place;

  double At(double value) const {
    const double begin = OnScale(axis, range.begin), end = OnScale(axis, range.end);
    const double part = std::clamp((OnScale(axis, value) - begin) / (end - begin), 0.0, 1.0);
    return place.begin + part * (place.end - place.begin);
  }
  ChartRange At(const ChartRange& values) const { return {At(values.begin), At(values.end)}; }
  ChartRange Ascending(const ChartRange& values) const {
    const auto [low, high] = std::minmax({At(values.begin), At(values.end)});
    return {low, high};
  }
  // Whether any of the values is within the range.
  bool Shows(const ChartRange& values) const {
    const double slack = 1e-9 * std::abs(range.end - range.begin);
    return std::max(values.begin, values.end) >= std::min(range.begin, range.end) - slack &&
           std::min(values.begin, values.end) <= std::max(range.begin, range.end) + slack;
  }
};

class Drawing {
 public:
  Drawing(const Chart& chart, const Scale& x, const Scale& y) : chart_(chart), x_(x), y_(y) {}

  std::string Draw(bool has_numbers) const {
    std::string svg = Heading();
    if (chart_.shaded) svg += SvgRect(x_.place, {top(), bottom()}, " class=\"row\"", "");
    svg += Grid();
    if (has_numbers) svg += BelowArea();
    for (const ChartBox& box : chart_.boxes) svg += Box(box);
    for (const ChartLine& line : chart_.lines) svg += Line(line);
    for (const ChartRule& rule : chart_.rules) svg += Rule(rule);
    for (const ChartDot& dot : chart_.dots) svg += Dot(dot);
    for (const ChartText& text : chart_.texts) {
      svg += SvgText(x_.At(text.at.x) + text.right, y_.At(text.at.y) + text.down, text.anchor,
                     Attribute("class", "small"), text.text, text.title);
    }
    return svg + NamesOfLines();
  }

 private:
  double left() const { return x_.place.begin; }
  double right() const { return x_.place.end; }
  double top() const { return y_.place.end; }
  double bottom() const { return y_.place.begin; }

  std::string Heading() const {
    if (chart_.title.empty()) return "";
    return absl::StrFormat(
        "<text x=\"%.1f\" y=\"%.1f\" class=\"name\">%s<tspan class=\"small\" dx=\"14\">%s</tspan>"
        "</text>\n",
        left(), top() - 9, XmlEscaped(chart_.title), XmlEscaped(chart_.note));
  }

  std::string Grid() const {
    std::string svg;
    for (const ChartTick& tick : TicksOf(chart_.y, y_.range)) {
      const double at = y_.At(tick.at);
      if (chart_.y.grid) svg += SvgLine(x_.place, {at, at}, "grid");
      svg += SvgText(left() - 7, at + 4, "end", Attribute("class", tick.style), tick.text);
    }
    if (!chart_.x.grid) return svg;
    for (const ChartTick& tick : TicksOf(chart_.x, x_.range)) {
      svg += SvgLine({x_.At(tick.at), x_.At(tick.at)}, y_.place, "grid");
    }
    return svg;
  }

  std::string BelowArea() const {
    std::string svg;
    const bool slanted = SlantedHeight(chart_.x, right() - left()) > 0;
    for (const ChartTick& tick : TicksOf(chart_.x, x_.range)) {
      const double x = x_.At(tick.at) + (slanted ? 6 : 0), y = bottom() + (slanted ? 14 : 17);
      const std::string rotated =
          slanted ? absl::StrFormat(" transform=\"rotate(-30 %.1f %.1f)\"", x, y) : "";
      svg += SvgLine({x_.At(tick.at), x_.At(tick.at)}, {bottom(), bottom() + 4}, "grid") +
             SvgText(x, y, slanted ? "end" : "middle", Attribute("class", tick.style) + rotated,
                     tick.text);
    }
    const double names = bottom() + HeightBelow(chart_, right() - left()) - 5;
    return svg + SvgText(right(), names, "end", Attribute("class", "small"), chart_.x.name) +
           SvgText(left(), names, "start", Attribute("class", "small"),
                   chart_.y.name.empty() ? "" : absl::StrCat("\u2191 ", chart_.y.name));
  }

  std::string Box(const ChartBox& box) const {
    const ChartRange x = x_.Ascending(box.x), y = y_.Ascending(box.y);
    if (!(x.end > x.begin) || !(y.end > y.begin)) return "";
    const bool waits = box.color.empty() && *box.style == 0;
    const std::string style = Attribute("class", waits ? "wait" : box.style);
    const std::string svg = SvgRect(x, y, Attribute("fill", box.color) + style, box.title);
    if (x.end - x.begin < kLetter * static_cast<double>(box.text.size()) + 4) return svg;
    return svg + SvgText(x.Middle(), y.Middle() + 4, "middle",
                         Attribute("class", waits ? "waits" : "block"), box.text);
  }

  std::string Line(const ChartLine& line) const {
    std::string path;
    ChartRange x;
    for (const ChartPoint& point : line.points) {
      if (!IsOnAxes(point)) continue;
      x.end = x_.At(point.x);
      if (path.empty()) x.begin = x.end;
      absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "M" : " L", x.end, y_.At(point.y));
    }
    if (path.empty()) return "";
    std::string svg;
    if (line.style == LineStyle::kFilled) {
      svg =
          absl::StrFormat("<path d=\"%s L%.1f,%.1f L%.1f,%.1f Z\" fill=\"%s\" opacity=\"0.18\"/>\n",
                          path, x.end, y_.At(0), x.begin, y_.At(0), line.color);
    }
    const char* more = line.style == LineStyle::kDashed  ? " stroke-dasharray=\"3 4\""
                       : line.style == LineStyle::kFaint ? " opacity=\"0.3\""
                                                         : "";
    return absl::StrCat(svg, "<path d=\"", path, "\" fill=\"none\" stroke=\"", line.color,
                        "\" stroke-width=\"1.5\" stroke-linejoin=\"round\"", more, ">",
                        TitleOf(line.title), "</path>\n");
  }

  std::string Rule(const ChartRule& rule) const {
    if (!x_.Shows(rule.x) || !y_.Shows(rule.y)) return "";
    const ChartRange x = x_.At(rule.x), y = y_.At(rule.y);
    std::string svg = rule.ends == RuleEnds::kHalo ? SvgLine(x, y, "clear") : "";
    svg += SvgLine(x, y, rule.style);
    if (rule.ends != RuleEnds::kCaps) return svg;
    const bool level = y.begin == y.end;
    const double dx = level ? 0 : kCap, dy = level ? kCap : 0;
    for (const ChartPoint& end : {ChartPoint{x.begin, y.begin}, ChartPoint{x.end, y.end}}) {
      svg += SvgLine({end.x - dx, end.x + dx}, {end.y - dy, end.y + dy}, rule.style);
    }
    return svg;
  }

  std::string Dot(const ChartDot& dot) const {
    if (!IsOnAxes(dot.at)) return "";
    return absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\" %s>%s</circle>\n",
                           x_.At(dot.at.x), y_.At(dot.at.y), dot.radius, dot.color,
                           dot.faint ? "opacity=\"0.45\"" : "class=\"dot\"", TitleOf(dot.title));
  }

  // Names at the ends of lines, one below another if these are close together.
  std::string NamesOfLines() const {
    std::vector<std::pair<double, const ChartLine*>> names;
    for (const ChartLine& line : chart_.lines) {
      if (!line.named || line.points.empty() || !IsOnAxes(line.points.back())) continue;
      names.emplace_back(y_.At(line.points.back().y) + 4, &line);
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 1; i < names.size(); ++i) {
      names[i].first = std::max(names[i].first, names[i - 1].first + kLineHeight);
    }
    // Keeps names inside the picture, by moving them up from the bottom.
    double lowest = bottom() + 4;
    std::string svg;
    for (size_t i = names.size(); i > 0; --i) {
      const ChartLine& line = *names[i - 1].second;
      const double y = std::min(names[i - 1].first, lowest);
      lowest = y - kLineHeight;
      svg += SvgText(right() + 8, y, "start", absl::StrCat(" style=\"fill:", line.color, "\""),
                     line.title);
    }
    return svg;
  }

  bool IsOnAxes(const ChartPoint& point) const {
    return IsOn(chart_.x, point.x) && IsOn(chart_.y, point.y);
  }

  const Chart& chart_;
  const Scale x_, y_;
};

// Draws the legend and moves `top` below it.
std::string Legend(const ChartGrid& grid, double& top) {
  std::string svg;
  double x = grid.width;
  for (const auto& [name, color] : grid.legend) {
    const double width = 34 + kLetter * static_cast<double>(name.size());
    if (x + width > grid.width) {
      x = grid.left;
      top += kLegendHeight;
    }
    svg += SvgRect({x, x + 14}, {top - 12, top - 1}, Attribute("fill", color), name) +
           SvgText(x + 19, top - 2, "start", "", name);
    x += width;
  }
  return svg;
}

// Draws a row of charts and moves `top` below them. `all`: charts of the picture.
std::string Row(std::span<const Chart> row, std::span<const Chart> all, const ChartGrid& grid,
                double& top) {
  const bool has_numbers = !grid.same_x || row.end() == all.end();
  const double width = grid.AreaWidth();
  double title = kNoTitle, height = 0;
  std::vector<std::optional<ChartRange>> x, y;
  for (const Chart& chart : row) {
    const std::span<const Chart> own(&chart, 1);
    x.push_back(RangeOf(chart.x, ValuesOf(grid.same_x ? all : own, true)));
    y.push_back(RangeOf(chart.y, ValuesOf(grid.same_y ? all : own, false)));
    if (!x.back().has_value() || !y.back().has_value()) continue;
    if (!chart.title.empty()) title = kTitleHeight;
    height = std::max(height, chart.height + (has_numbers ? HeightBelow(chart, width) : 0));
  }
  std::string svg;
  for (size_t i = 0; i < row.size(); ++i) {
    if (!x[i].has_value() || !y[i].has_value()) continue;
    const double left = grid.left + static_cast<double>(i) * (width + grid.between);
    const double bottom = top + title + row[i].height;
    svg += Drawing(row[i], {row[i].x, *x[i], {left, left + width}},
                   {row[i].y, *y[i], {bottom, bottom - row[i].height}})
               .Draw(has_numbers);
  }
  if (height == 0) return "";
  top += title + height + kRowSpace;
  return svg;
}

}  // namespace

double ChartGrid::AreaWidth() const {
  const auto count = static_cast<double>(columns);
  return (width - left - right - (count - 1) * between) / count;
}

std::string ChartsSvg(const std::vector<Chart>& charts, const ChartGrid& grid) {
  double top = 0;
  const std::string legend = Legend(grid, top);
  std::string rows;
  for (size_t first = 0; first < charts.size(); first += grid.columns) {
    const std::span<const Chart> all(charts);
    rows += Row(all.subspan(first, std::min(grid.columns, charts.size() - first)), all, grid, top);
  }
  if (rows.empty()) return "";
  return absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" role=\"img\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n%s%s</svg>\n",
      grid.width, top, grid.width, legend, rows);
}

std::string SvgFile(const std::string& svg, const std::string& style, const std::string& more) {
  const size_t end = svg.find('>');
  if (end == std::string::npos) return "";
  return absl::StrCat(svg.substr(0, end + 1), "\n<style>", style, "</style>\n", more, "\n",
                      svg.substr(end + 1));
}

std::vector<double> NiceTicks(double low, double high, int wanted) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) return {};
  if (low == high) return {low};
  const double rough = (high - low) / std::max(1, wanted);
  const double magnitude = std::pow(10.0, std::floor(std::log10(rough)));
  double distance = 10 * magnitude;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * magnitude >= rough) {
      distance = factor * magnitude;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / distance - 1e-9);
  for (double i = first; i * distance <= high + 1e-9 * distance; ++i) ticks.push_back(i * distance);
  return ticks;
}

Chart RowsChart(const std::string& title, const std::string& x_name) {
  return {.title = title,
          .shaded = false,
          .x = {.name = x_name, .from_zero = true, .grid = true},
          .y = {.range = ChartRange(), .wanted = 0}};
}

ChartRange AddRow(Chart& chart, const std::string& name, const RowLook& look) {
  const ChartRange row{chart.height, chart.height + look.height};
  chart.y.ticks.push_back({row.Middle(), name, look.style});
  if (look.shaded) chart.boxes.push_back({.x = kWholeAxis, .y = row, .style = "row"});
  chart.height = row.end + look.gap;
  chart.y.range = {chart.height, 0};
  return row;
}

void AddBar(Chart& chart, const Bar& bar) {
  const ChartRange row = AddRow(chart, bar.name, {});
  double end = 0;
  for (const BarPart& part : bar.parts) {
    chart.boxes.push_back({{end, end + part.length}, row, part.color, part.title});
    end += part.length;
  }
  for (const auto& [at, style] : bar.marks) {
    chart.rules.push_back({{at, at}, {row.begin - 2, row.end + 2}, style, RuleEnds::kHalo});
    end = std::max(end, at);
  }
  if (bar.spread.has_value()) {
    const ChartRange level{row.Middle(), row.Middle()};
    chart.rules.push_back({*bar.spread, level, "range", RuleEnds::kCaps});
    end = std::max(end, bar.spread->end);
  }
  chart.texts.push_back({{end, row.Middle()}, bar.label});
}

}  // namespace tug
