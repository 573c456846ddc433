// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/error_panels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"

namespace tug {
namespace {

constexpr double kHeight = 240;
constexpr double kWidestBar = 34;
constexpr double kApart = 9;  // between series at the same number, so that error bars are apart
constexpr double kLeft = 66, kRight = 14;
constexpr double kRightOfSingle = 360;  // additional room

// If all labels are numbers in ascending order: where they are on an axis from 0 to 1.
std::optional<std::vector<double>> PlacesOfNumbers(const std::vector<std::string>& labels) {
  std::vector<double> numbers;
  for (const std::string& label : labels) {
    double number = 0;
    if (!absl::SimpleAtod(label, &number) || !std::isfinite(number)) return std::nullopt;
    if (!numbers.empty() && number <= numbers.back()) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() < 2) return std::nullopt;
  const double least = numbers.front(), most = numbers.back();
  const bool log = least > 0 && most / least >= 8;
  for (double& number : numbers) {
    const double part =
        log ? std::log(number / least) / std::log(most / least) : (number - least) / (most - least);
    number = 0.05 + 0.9 * part;
  }
  return numbers;
}

// `x`: where the point is drawn. `bar`: width of its bar; 0: it has none.
void AddPoint(const ErrorPicture& picture, const ErrorSeries& series, const ErrorPoint& point,
              double x, double bar, Chart& chart) {
  const RepeatSpread& spread = point.spread;
  const std::string title =
      absl::StrFormat("%s, %s: %.5g [%.5g, %.5g], runs: %d", series.name, picture.x_labels[point.x],
                      spread.median, spread.low, spread.high, spread.count);
  if (bar > 0) {
    const ChartRange width{x - bar / 2, x + bar / 2};
    const double part = std::min(point.part, spread.median);
    chart.boxes.push_back({width, {0, spread.median}, series.color, title});
    if (part > 0) chart.boxes.push_back({width, {spread.median - part, spread.median}, "", title});
  } else {
    chart.dots.push_back({{x, spread.median}, series.color, title, 4.2});
  }
  for (const double value : point.values) {
    chart.dots.push_back({{x + (bar > 0 ? bar * 0.3 : 0.009), value}, "var(--ink)", "", 1.8, true});
  }
  if (spread.count > 1) {
    chart.rules.push_back({{x, x}, {spread.low, spread.high}, "range", RuleEnds::kCaps});
  }
}

Chart ChartOf(const ErrorPicture& picture, const ErrorPanel& panel, double width) {
  const std::optional<std::vector<double>> numbers = PlacesOfNumbers(picture.x_labels);
  const double slot = 1 / static_cast<double>(picture.x_labels.size());
  Chart chart{.title = panel.title,
              .height = kHeight,
              .x = {.name = picture.x_name, .range = ChartRange{0, 1}},
              .y = {.name = picture.y_name,
                    .from_zero = picture.from_zero,
                    .margin = 0.08,
                    .wanted = 6,
                    .grid = true}};
  for (size_t i = 0; i < picture.x_labels.size(); ++i) {
    const double at = numbers.has_value() ? (*numbers)[i] : slot * (static_cast<double>(i) + 0.5);
    chart.x.ticks.push_back({at, picture.x_labels[i], ""});
  }
  const auto count = static_cast<double>(std::max<size_t>(1, panel.series.size()));
  const double each = std::min(kWidestBar / width, 0.8 * slot / count);
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const ErrorSeries& series = panel.series[i];
    const double aside =
        (static_cast<double>(i) - (count - 1) / 2) * (numbers.has_value() ? kApart / width : each);
    ChartLine line{.color = series.color, .title = series.name};
    for (const ErrorPoint& point : series.points) {
      const double x = chart.x.ticks[point.x].at + aside;
      AddPoint(picture, series, point, x, HasBars(picture) ? each * 0.92 : 0, chart);
      line.points.push_back({x, point.spread.median});
    }
    if (numbers.has_value()) chart.lines.push_back(std::move(line));
  }
  return chart;
}

}  // namespace

bool HasBars(const ErrorPicture& picture) {
  return picture.from_zero && !PlacesOfNumbers(picture.x_labels).has_value();
}

std::string ErrorPanelsSvg(const ErrorPicture& picture) {
  ChartGrid grid{.left = kLeft, .right = kRight, .same_y = !picture.own_scales};
  if (picture.panels.size() == 1) {
    grid.right += kRightOfSingle;
  } else {
    grid.columns = 2;
    grid.between = kLeft + kRight + 20;
  }
  std::vector<Chart> charts;
  std::span<const ErrorSeries> most;
  for (const ErrorPanel& panel : picture.panels) {
    charts.push_back(ChartOf(picture, panel, grid.AreaWidth()));
    if (panel.series.size() > most.size()) most = panel.series;
  }
  if (most.size() > 1) {
    for (const ErrorSeries& series : most) grid.legend.emplace_back(series.name, series.color);
  }
  return ChartsSvg(charts, grid);
}

}  // namespace tug
