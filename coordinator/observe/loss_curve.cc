// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/charts/chart.h"

namespace tug {
namespace {

constexpr double kWidth = 860, kLeft = 64, kRight = 24;
constexpr char kTraining[] = "#2f6db5", kValidation[] = "#d1495b";  // colours
constexpr size_t kLabelLetters = 48;  // a label fits in half of the width
constexpr size_t kLabelRows = 8;
constexpr double kLabelHeight = 15;
// For viewers that know little CSS: without variables.
constexpr char kStyle[] =
    "svg { font: 12px sans-serif; } text { fill: #333; } .name { font-size: 16px; "
    "font-weight: bold; } .grid { stroke: #e6e6e6; } .dot { stroke: white; } "
    ".settings { stroke: #777; stroke-dasharray: 4 3; } "
    ".small { paint-order: stroke; stroke: white; stroke-width: 3px; }";

std::vector<ChartPoint> Finite(const std::vector<LossPoint>& points) {
  std::vector<ChartPoint> finite;
  for (const LossPoint& point : points) {
    if (std::isfinite(point.loss)) finite.push_back({static_cast<double>(point.step), point.loss});
  }
  return finite;
}

// Averages groups of neighbours, so that at most `most` points remain.
std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points, size_t most) {
  const size_t group = (points.size() + most - 1) / most;
  if (group <= 1) return points;
  std::vector<ChartPoint> thinned;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(begin + group, points.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += points[i].y;
    thinned.push_back({points[(begin + end - 1) / 2].x, sum / static_cast<double>(end - begin)});
  }
  return thinned;
}

// Minimum and maximum of groups of neighbours: the spread of a long, noisy series in at most 2 x
// `most` points.
std::vector<ChartPoint> Envelope(const std::vector<ChartPoint>& points, size_t most) {
  const size_t group = (points.size() + most - 1) / most;
  if (group <= 2) return points;
  std::vector<ChartPoint> envelope;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const auto first = points.begin() + begin;
    const auto last = points.begin() + std::min(begin + group, points.size());
    auto [least, greatest] = std::minmax_element(
        first, last, [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; });
    if (greatest < least) std::swap(least, greatest);
    envelope.push_back(*least);
    if (greatest != least) envelope.push_back(*greatest);
  }
  return envelope;
}

// Centred moving average. The window shrinks toward the beginning, which keeps the curve's steep
// start. At the end it only loses its later half, so that the last value is not that of a single
// step.
std::vector<ChartPoint> Smoothed(const std::vector<ChartPoint>& points) {
  const size_t reach = std::max<size_t>(1, points.size() / 80);
  std::vector<ChartPoint> smooth = points;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t first = i - std::min(reach, i);
    const size_t last = std::min(i + std::min(reach, i), points.size() - 1);
    double sum = 0;
    for (size_t j = first; j <= last; ++j) sum += points[j].y;
    smooth[i].y = sum / static_cast<double>(last - first + 1);
  }
  return smooth;
}

// The first setting, and the number of the others.
std::string LabelOf(const std::vector<std::string>& changed) {
  std::string label = changed.front();
  if (label.size() > kLabelLetters) label = label.substr(0, kLabelLetters - 3) + "...";
  if (changed.size() > 1) absl::StrAppend(&label, ", +", changed.size() - 1, " more");
  return label;
}

// Draws a rule at each change, with a label on the wider side; labels of neighbours are below one
// another. `last_step`: the end of the x axis.
void MarkSettings(const std::vector<SettingsChange>& settings, double last_step, Chart& chart) {
  for (size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].changed.empty()) continue;
    const auto step = static_cast<double>(settings[i].step);
    const bool on_the_right = step < last_step / 2;
    chart.rules.push_back({{step, step}, kWholeAxis, "settings"});
    chart.texts.push_back({.at = {step, kAxisEnd},
                           .text = LabelOf(settings[i].changed),
                           .right = on_the_right ? 5.0 : -5.0,
                           .down = kLabelHeight * static_cast<double>(i % kLabelRows + 1),
                           .anchor = on_the_right ? "start" : "end",
                           .title = absl::StrCat("settings changed at step ", settings[i].step,
                                                 ":\n", absl::StrJoin(settings[i].changed, "\n"))});
  }
}

double LastStep(const LossCurve& curve) {
  uint64_t last = 0;
  for (const auto* series : {&curve.training, &curve.validation}) {
    if (!series->empty()) last = std::max(last, series->back().step);
  }
  if (!curve.settings.empty()) last = std::max(last, curve.settings.back().step);
  return static_cast<double>(last);
}

}  // namespace

std::string LossCurveSvg(const LossCurve& curve) {
  const std::vector<ChartPoint> training = Finite(curve.training);
  const std::vector<ChartPoint> validation = Finite(curve.validation);
  const auto columns = static_cast<size_t>(kWidth - kLeft - kRight);
  Chart chart{.title = curve.title,
              .height = 380,
              .shaded = false,
              .x = {.name = "step", .from_zero = true},
              .y = {.name = "loss (nats per token)", .margin = 0.05, .wanted = 7, .grid = true}};
  ChartGrid grid{.width = kWidth, .left = kLeft, .right = kRight};
  if (!training.empty()) {
    chart.lines = {{Envelope(training, columns), kTraining, "", LineStyle::kFaint},
                   {Smoothed(Thinned(training, columns)), kTraining}};
    grid.legend.emplace_back("training, moving average", kTraining);
  }
  if (!validation.empty()) {
    chart.lines.push_back({validation, kValidation, "", LineStyle::kFaint});
    grid.legend.emplace_back(absl::StrFormat("validation, last %.3f", validation.back().y),
                             kValidation);
  }
  for (const ChartPoint& point : validation) chart.dots.push_back({point, kValidation});
  if (training.empty() && validation.empty()) {
    chart.x.range = chart.y.range = ChartRange{0, 1};
    chart.texts = {{{0.5, 0.5}, "no step was completed", 0, 0, "middle"}};
  } else {
    MarkSettings(curve.settings, LastStep(curve), chart);
  }
  return SvgFile(ChartsSvg({chart}, grid), kStyle,
                 "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>");
}

}  // namespace tug
