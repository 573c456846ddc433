// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/utilisation_svg.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"
#include "lab/experiment/measures/figure_text.h"

namespace tug {
namespace {

// Heights. The strip of activities stands below the plot, at negative utilisations.
constexpr double kPlot = 84, kStripGap = 6, kStrip = 14;
constexpr size_t kWindows = 260;  // per axis

struct Kind {
  const char* name;
  const char* color;
};
constexpr Kind kPasses[] = {
    {"forward", "var(--busy)"}, {"backward", "var(--series0)"}, {"update", "var(--series4)"}};
constexpr Kind kGaps[] = {
    {"BP bubble", "var(--wait)"}, {"FP bubble", "var(--slow)"}, {"other idle", "var(--grid)"}};

struct Panel {
  const DrawnDevice& device;
  std::vector<DeviceStep> steps;
  double begin() const { return steps.front().begin_seconds; }
  double end() const { return steps.back().end_seconds; }
};

void AddLine(const Panel& panel, double axis, Chart& chart) {
  const double shown = std::min(axis, panel.end() - panel.begin());
  const auto windows =
      static_cast<size_t>(std::max(1.0, std::round(static_cast<double>(kWindows) * shown / axis)));
  const std::vector<double> parts =
      UtilisationOver(*panel.device.timeline, panel.begin(), panel.begin() + shown, windows);
  const double width_ms = shown / static_cast<double>(windows) * 1e3;
  ChartLine line{.color = "var(--series0)", .style = LineStyle::kFilled};
  for (size_t w = 0; w < windows; ++w) {
    line.points.push_back({static_cast<double>(w) * width_ms, parts[w]});
    line.points.push_back({static_cast<double>(w + 1) * width_ms, parts[w]});
  }
  chart.lines.push_back(std::move(line));
}

void AddStrip(const Panel& panel, Chart& chart) {
  constexpr ChartRange kStripY = {-(kStripGap + kStrip) / kPlot, -kStripGap / kPlot};
  chart.boxes.push_back({.x = kWholeAxis, .y = kStripY, .style = "row"});
  const auto add = [&](const auto& span, const Kind& kind) {
    chart.boxes.push_back(
        {{(span.begin_seconds - panel.begin()) * 1e3, (span.end_seconds - panel.begin()) * 1e3},
         kStripY,
         kind.color,
         absl::StrFormat("step %d, %s, %.2f ms", span.step, kind.name,
                         (span.end_seconds - span.begin_seconds) * 1e3)});
  };
  for (const DeviceSpan& span : panel.device.timeline->spans) {
    add(span, kPasses[static_cast<size_t>(span.kind)]);
  }
  for (const DeviceGap& gap : DeviceGaps(*panel.device.timeline)) {
    add(gap, kGaps[static_cast<size_t>(gap.kind)]);
  }
}

Chart ChartOf(const Panel& panel, double axis) {
  const double utilisation = Utilisation(panel.steps);
  Chart chart{.title = panel.device.name,
              .note = absl::StrCat("mean ", PercentText(utilisation)),
              .height = kPlot + kStripGap + kStrip,
              .shaded = false,
              .x = {.name = "time since the first measured step of each case (ms)",
                    .range = ChartRange{0, axis * 1e3},
                    .wanted = 10,
                    .grid = true},
              .y = {.range = ChartRange{-(kStripGap + kStrip) / kPlot, 1},
                    .ticks = {{0, "0%"}, {0.5, "50%"}, {1, "100%"}},
                    .grid = true}};
  if (!panel.device.note.empty()) absl::StrAppend(&chart.note, "; ", panel.device.note);
  AddLine(panel, axis, chart);
  AddStrip(panel, chart);
  chart.rules.push_back(
      {{0, (panel.end() - panel.begin()) * 1e3}, {utilisation, utilisation}, "bound"});
  for (const DeviceStep& step : panel.steps) {
    const double at = (step.end_seconds - panel.begin()) * 1e3;
    chart.rules.push_back({{at, at}, kWholeAxis, "range"});
  }
  return chart;
}

}  // namespace

std::string UtilisationSvg(const std::vector<DrawnDevice>& devices, size_t steps) {
  std::vector<Panel> panels;
  double axis = 0;
  for (const DrawnDevice& device : devices) {
    if (device.timeline == nullptr) continue;
    Panel panel{device, DeviceSteps(*device.timeline)};
    if (panel.steps.empty()) continue;
    const size_t last = std::min(std::max<size_t>(steps, 1), panel.steps.size()) - 1;
    axis = std::max(axis, panel.steps[last].end_seconds - panel.begin());
    panels.push_back(std::move(panel));
  }
  if (axis <= 0) return "";
  std::vector<Chart> charts;
  for (const Panel& panel : panels) charts.push_back(ChartOf(panel, axis));
  ChartGrid grid{.left = 64, .same_x = true};
  for (const auto* kinds : {&kPasses, &kGaps}) {
    for (const Kind& kind : *kinds) grid.legend.emplace_back(kind.name, kind.color);
  }
  return ChartsSvg(charts, grid);
}

}  // namespace tug
