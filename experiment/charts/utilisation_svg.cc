// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/utilisation_svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/report_page.h"
#include "experiment/charts/svg.h"
#include "experiment/measures/figure_text.h"

namespace tug {
namespace {

constexpr double kLeft = 64, kRight = 16, kWidth = kPictureWidth - kLeft - kRight;
constexpr double kTitle = 28, kPlot = 84, kStripGap = 6, kStrip = 14, kGroupGap = 22, kAxis = 40;
constexpr double kGroup = kTitle + kPlot + kStripGap + kStrip + kGroupGap;
constexpr double kNameWidth = 8.6;  // width of a letter
constexpr size_t kWindows = 260;    // per axis
constexpr int kTicks = 10;

constexpr const char* kPassColors[] = {"var(--busy)", "var(--series0)", "var(--series4)"};
constexpr const char* kPassNames[] = {"forward", "backward", "update"};
constexpr const char* kGapColors[] = {"var(--wait)", "var(--slow)", "var(--grid)"};
constexpr const char* kGapNames[] = {"BP bubble", "FP bubble", "other idle"};

struct Panel {
  const DrawnDevice& device;
  std::vector<DeviceStep> steps;
  double begin() const { return steps.front().begin_seconds; }
  double end() const { return steps.back().end_seconds; }
};

double X(double seconds, double axis) {
  return kLeft + std::clamp(seconds / axis, 0.0, 1.0) * kWidth;
}

// The utilisation line, and the area below it.
std::string Line(const Panel& panel, double axis, double top) {
  const double shown = std::min(axis, panel.end() - panel.begin());
  const auto windows =
      static_cast<size_t>(std::max(1.0, std::round(static_cast<double>(kWindows) * shown / axis)));
  const std::vector<double> parts =
      UtilisationOver(*panel.device.timeline, panel.begin(), panel.begin() + shown, windows);
  std::string line;
  for (size_t w = 0; w < windows; ++w) {
    const double width = shown / static_cast<double>(windows);
    const double y = top + kPlot * (1 - parts[w]);
    absl::StrAppendFormat(&line, "%s%.1f,%.1f L%.1f,%.1f", w == 0 ? "M" : " L",
                          X(static_cast<double>(w) * width, axis), y,
                          X(static_cast<double>(w + 1) * width, axis), y);
  }
  const double bottom = top + kPlot;
  return absl::StrFormat(
      "<path d=\"%s L%.1f,%.1f L%.1f,%.1f Z\" fill=\"var(--series0)\" opacity=\"0.18\"/>\n"
      "<path d=\"%s\" fill=\"none\" stroke=\"var(--series0)\" stroke-width=\"1.3\"/>\n",
      line, X(shown, axis), bottom, kLeft, bottom, line);
}

std::string Strip(const Panel& panel, double axis, double top) {
  std::string svg = SvgRect(kLeft, top, kWidth, kStrip, "row");
  const auto bar = [&](double begin, double end, const char* color, const char* name,
                       uint64_t step) {
    begin -= panel.begin();
    end -= panel.begin();
    if (end <= 0 || begin >= axis) return;
    svg += SvgBar(X(begin, axis), top, X(end, axis) - X(begin, axis), kStrip, color,
                  absl::StrFormat("step %d, %s, %.2f ms", step, name, (end - begin) * 1e3));
  };
  for (const DeviceSpan& span : panel.device.timeline->spans) {
    const auto kind = static_cast<size_t>(span.kind);
    bar(span.begin_seconds, span.end_seconds, kPassColors[kind], kPassNames[kind], span.step);
  }
  for (const DeviceGap& gap : DeviceGaps(*panel.device.timeline)) {
    const auto kind = static_cast<size_t>(gap.kind);
    bar(gap.begin_seconds, gap.end_seconds, kGapColors[kind], kGapNames[kind], gap.step);
  }
  return svg;
}

std::string Group(const Panel& panel, double axis, double top) {
  std::string svg = SvgText(kLeft, top + kTitle - 10, "start", "name", panel.device.name);
  const double utilisation = Utilisation(panel.steps);
  std::string note = absl::StrCat("mean ", PercentText(utilisation));
  if (!panel.device.note.empty()) absl::StrAppend(&note, "; ", panel.device.note);
  svg += SvgText(kLeft + kNameWidth * static_cast<double>(panel.device.name.size()) + 14,
                 top + kTitle - 10, "start", "small", note);
  const double plot = top + kTitle;
  for (const int percent : {0, 50, 100}) {
    const double y = plot + kPlot * (1 - percent / 100.0);
    svg += SvgLine(kLeft, y, kLeft + kWidth, y, "grid");
    svg += SvgText(kLeft - 8, y + 4, "end", "small", absl::StrCat(percent, "%"));
  }
  svg += Line(panel, axis, plot);
  const double mean = plot + kPlot * (1 - utilisation);
  svg += SvgLine(kLeft, mean, X(panel.end() - panel.begin(), axis), mean, "bound");
  svg += Strip(panel, axis, plot + kPlot + kStripGap);
  for (const DeviceStep& step : panel.steps) {
    const double at = step.end_seconds - panel.begin();
    if (at > axis) break;
    svg += SvgLine(X(at, axis), plot, X(at, axis), plot + kPlot + kStripGap + kStrip, "range");
  }
  return svg;
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
  if (panels.empty() || axis <= 0) return "";
  const double bottom = static_cast<double>(panels.size()) * kGroup;
  std::string svg;
  for (const double ms : NiceTicks(0, axis * 1e3, kTicks)) {
    const double x = X(ms * 1e-3, axis);
    svg += SvgLine(x, 0, x, bottom, "grid");
    svg += SvgText(x, bottom + 14, "middle", "small", absl::StrFormat("%g", ms + 0.0));  // no -0
  }
  svg += SvgText(kPictureWidth - kRight, bottom + 32, "end", "small",
                 "ms since the first measured step of each case");
  double top = 0;
  for (const Panel& panel : panels) {
    svg += Group(panel, axis, top);
    top += kGroup;
  }
  return SvgPicture(bottom + kAxis, svg);
}

std::string UtilisationLegend() {
  std::string html;
  const auto add = [&](const char* color, const char* name) {
    absl::StrAppend(&html, "<span class=\"entry\">", Swatch(absl::StrCat("background:", color)),
                    name, "</span> ");
  };
  for (size_t i = 0; i < std::size(kPassNames); ++i) add(kPassColors[i], kPassNames[i]);
  for (size_t i = 0; i < std::size(kGapNames); ++i) add(kGapColors[i], kGapNames[i]);
  return html;
}

}  // namespace tug
