// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/bar_group.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kLeft = 170, kRight = 250;
constexpr double kBar = 17, kBarGap = 4, kGroupTitle = 24, kAxis = 44;
constexpr double kHalo = 5;  // around a mark, to make it visible on any colour

double LengthOf(const Bar& bar) {
  double length = 0;
  for (const BarPart& part : bar.parts) length += part.length;
  return length;
}

// Length of a bar, with marks beyond its end.
double ReachOf(const Bar& bar) {
  double reach = LengthOf(bar);
  for (const BarMark& mark : bar.marks) reach = std::max(reach, mark.at);
  return reach;
}

std::string DrawBar(const Bar& bar, double scale, double top) {
  std::string svg = SvgText(kLeft - 8, top + kBar - 4, "end", "", bar.name);
  double x = kLeft;
  for (const BarPart& part : bar.parts) {
    const double width = part.length * scale;
    svg += part.color.empty() ? SvgWaitBar(x, top, width, kBar, part.title)
                              : SvgBar(x, top, width, kBar, part.color, part.title);
    x += width;
  }
  for (const BarMark& mark : bar.marks) {
    const double at = kLeft + mark.at * scale;
    svg += SvgRect(at - kHalo / 2, top - 2, kHalo, kBar + 4, "clear");
    svg += SvgLine(at, top - 2, at, top + kBar + 2, mark.style);
  }
  return svg +
         SvgText(kLeft + ReachOf(bar) * scale + 8, top + kBar - 4, "start", "small", bar.label);
}

}  // namespace

std::vector<BarPart> StepParts(double length, double waits, const std::string& color,
                               const std::string& name, const std::string& label) {
  const double waiting = std::clamp(waits, 0.0, length);
  std::vector<BarPart> parts = {{length - waiting, color, absl::StrCat(name, ": ", label)}};
  if (waiting > 0) parts.push_back({waiting, "", absl::StrCat(name, ": waits for weights")});
  return parts;
}

std::string BarGroupSvg(const std::string& title, const std::vector<Bar>& bars,
                        const std::string& axis_name, double& top) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, ReachOf(bar));
  if (!(most > 0)) return "";
  const double scale = (kPictureWidth - kLeft - kRight) / most;
  std::string svg = SvgText(0, top + 16, "start", "name", title);
  top += kGroupTitle;
  const double first = top;
  std::string drawn;
  for (const Bar& bar : bars) {
    drawn += DrawBar(bar, scale, top);
    top += kBar + kBarGap;
  }
  for (const double tick : NiceTicks(0, most, 8)) {
    const double x = kLeft + tick * scale;
    svg += SvgLine(x, first - 2, x, top, "grid");
    svg += SvgText(x, top + 14, "middle", "small", absl::StrFormat("%g", tick + 0.0));  // no -0
  }
  svg += SvgText(kPictureWidth - kRight + 24, top + 14, "start", "small", axis_name);
  top += kAxis;
  return svg + drawn;
}

}  // namespace tug
