// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/timeline_svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

using Row = TimelineSpan::Row;

constexpr double kWidth = kPictureWidth, kLeft = 74, kRight = 16;
constexpr double kTitle = 24;  // height of a timeline's title
constexpr double kRow = 22, kRowGap = 3, kGroupGap = 14;
constexpr double kGroup = kTitle + 3 * (kRow + kRowGap);
constexpr double kAxis = 40;
constexpr double kCharacter = 6.2;  // width, at the size of block names
constexpr double kMinSpan = 0.15;   // pixels; narrower ones are not drawn
constexpr double kMinWait = 0.004;  // as a part of the whole width; shorter ones are not drawn
constexpr int kTicks = 9;

struct Axis {
  double seconds = 1;
  double X(double at) const { return kLeft + at / seconds * (kWidth - kLeft - kRight); }
};

std::string VerticalLine(double x, double top, double bottom, const char* style) {
  return SvgLine(x, top, x, bottom, style);
}

const char* NameOf(Row row) {
  switch (row) {
    case Row::kForward:
      return "forward";
    case Row::kBackward:
      return "backward";
    case Row::kPush:
      return "push";
    case Row::kPull:
      return "pull";
  }
  return "";
}

class Drawing {
 public:
  Drawing(const Axis& axis, const std::vector<std::string>& block_names)
      : axis_(axis), names_(block_names) {}

  std::string Group(const DrawnTimeline& drawn, double top) const {
    const Timeline& timeline = *drawn.timeline;
    std::string svg = SvgText(kLeft, top + kTitle - 8, "start", "name", drawn.name);
    svg += SvgText(kLeft + 10.4 * static_cast<double>(drawn.name.size()) + 14, top + kTitle - 8,
                   "start", "small", drawn.note);
    const double rows = top + kTitle;
    svg += Compute(timeline, rows);
    svg += Transfers(timeline, Row::kPush, "push", rows + kRow + kRowGap);
    svg += Transfers(timeline, Row::kPull, "pull", rows + 2 * (kRow + kRowGap));
    return svg + VerticalLine(axis_.X(timeline.seconds), top + 6, top + kGroup, "end");
  }

 private:
  std::string Label(const char* text, double top) const {
    return SvgText(kLeft - 8, top + kRow / 2 + 4, "end", "small", text) +
           SvgRect(kLeft, top, kWidth - kLeft - kRight, kRow, "row");
  }

  std::string Compute(const Timeline& timeline, double top) const {
    std::vector<TimelineSpan> spans;
    for (const TimelineSpan& span : timeline.spans) {
      if (span.row == Row::kForward || span.row == Row::kBackward) spans.push_back(span);
    }
    std::stable_sort(spans.begin(), spans.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
      return a.begin_seconds < b.begin_seconds;
    });
    std::string svg = Label("compute", top);
    double busy_until = 0;
    for (const TimelineSpan& span : spans) {
      const double wait = span.begin_seconds - busy_until;
      if (wait > kMinWait * axis_.seconds) svg += Wait(busy_until, span.begin_seconds, top);
      busy_until = std::max(busy_until, span.end_seconds);
      svg += Span(span, top);
    }
    return svg;
  }

  std::string Transfers(const Timeline& timeline, Row row, const char* label, double top) const {
    std::string svg = Label(label, top);
    for (const TimelineSpan& span : InSequence(timeline, row)) svg += Span(span, top);
    return svg;
  }

  std::string Wait(double begin, double end, double top) const {
    const double x = axis_.X(begin), width = axis_.X(end) - x;
    std::string svg = absl::StrFormat(
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"wait\"><title>waits "
        "for "
        "weights, %.1f ms</title></rect>\n",
        x, top, width, kRow, (end - begin) * 1e3);
    if (width > 36) svg += SvgText(x + width / 2, top + kRow / 2 + 4, "middle", "waits", "waits");
    return svg;
  }

  std::string Span(const TimelineSpan& span, double top) const {
    const double x = axis_.X(span.begin_seconds);
    const double width = axis_.X(span.end_seconds) - x;
    if (width < kMinSpan) return "";
    const std::string name =
        span.block < names_.size() ? names_[span.block] : absl::StrCat(span.block);
    std::string svg = absl::StrFormat(
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
        "class=\"span\"><title>%s %s, %.1f to %.1f ms</title></rect>\n",
        x, top, width, kRow, BlockColor(span.block, names_.size(), span.row != Row::kForward),
        NameOf(span.row), XmlEscaped(name), span.begin_seconds * 1e3, span.end_seconds * 1e3);
    if (width > kCharacter * static_cast<double>(name.size()) + 4) {
      svg += SvgText(x + width / 2, top + kRow / 2 + 4, "middle", "block", name);
    }
    return svg;
  }

  const Axis& axis_;
  const std::vector<std::string>& names_;
};

std::string TimeAxis(const Axis& axis, double bottom) {
  std::string svg;
  for (const double ms : NiceTicks(0, axis.seconds * 1e3, kTicks)) {
    const double x = axis.X(ms * 1e-3);
    svg += VerticalLine(x, 0, bottom, "grid");
    svg += SvgText(x, bottom + 16, "middle", "small", absl::StrFormat("%g", ms + 0.0));  // no -0
  }
  return svg + SvgText(kWidth - kRight, bottom + 32, "end", "small",
                       "ms since the beginning of the backward pass");
}

}  // namespace

std::string BlockColor(size_t block, size_t count, bool dark) {
  const double place =
      count > 1 ? static_cast<double>(block) / static_cast<double>(count - 1) : 0.0;
  return absl::StrFormat("hsl(%.0f,%d%%,%d%%)", 12 + place * 246, dark ? 62 : 68, dark ? 63 : 80);
}

std::string TimelinesSvg(const std::vector<DrawnTimeline>& timelines,
                         const std::vector<std::string>& block_names,
                         std::optional<double> bound_seconds) {
  std::vector<DrawnTimeline> drawn;
  Axis axis{.seconds = 0};
  for (const DrawnTimeline& one : timelines) {
    if (one.timeline == nullptr || one.timeline->empty()) continue;
    drawn.push_back(one);
    axis.seconds = std::max(axis.seconds, one.timeline->seconds);
  }
  if (drawn.empty() || axis.seconds <= 0)
    return "<p class=\"note\">No timeline was recorded.</p>\n";
  axis.seconds *= 1.02;

  const double bottom = static_cast<double>(drawn.size()) * (kGroup + kGroupGap);
  std::string body = TimeAxis(axis, bottom);
  const Drawing drawing(axis, block_names);
  double top = 0;
  for (const DrawnTimeline& one : drawn) {
    body += drawing.Group(one, top);
    top += kGroup + kGroupGap;
  }
  if (bound_seconds.has_value() && *bound_seconds <= axis.seconds) {
    body += VerticalLine(axis.X(*bound_seconds), 0, bottom, "bound");
  }
  return SvgPicture(bottom + kAxis, body);
}

}  // namespace tug
