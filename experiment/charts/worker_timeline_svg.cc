// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/worker_timeline_svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kLeft = 84, kRight = 16;
constexpr double kTitle = 26, kRow = 22, kRowGap = 3, kGroupGap = 16, kAxis = 40;
constexpr double kMinLabelWidth = 14;    // width in pixels of a box with its number
constexpr double kMinWait = 2.5;         // width in pixels of a drawn wait
constexpr double kMinLabelledWait = 40;  // width in pixels of a wait with a label
constexpr int kTicks = 10;

struct Axis {
  double seconds = 1;
  double X(double at) const {
    return kLeft + std::clamp(at, 0.0, seconds) / seconds * (kPictureWidth - kLeft - kRight);
  }
};

std::string Step(const WorkerStep& step, bool slow, double top, const Axis& axis) {
  if (step.whole.begin_seconds >= axis.seconds) return "";
  const double x = axis.X(step.whole.begin_seconds);
  const double width = axis.X(step.whole.end_seconds) - x;
  std::string svg = absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"%s\"><title>step %d, "
      "%.1f "
      "to %.1f ms</title></rect>\n",
      x, top, width, kRow, slow ? "slowstep" : "step", step.step, step.whole.begin_seconds * 1e3,
      step.whole.end_seconds * 1e3);
  // The number is placed in the longest part without a wait.
  double begin = x, label = x + width / 2, widest = 0;
  const auto computes_until = [&](double end) {
    if (end - begin > widest) {
      widest = end - begin;
      label = (begin + end) / 2;
    }
  };
  for (const TimeRange& wait : step.waits) {
    if (wait.begin_seconds >= axis.seconds) break;
    const double from = axis.X(wait.begin_seconds), to = axis.X(wait.end_seconds);
    if (to - from < kMinWait) continue;
    computes_until(from);
    begin = to;
    svg += absl::StrFormat(
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"clear\"/>"
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"wait\"><title>step %d "
        "waits for weights, %.1f ms</title></rect>\n",
        from, top, to - from, kRow, from, top, to - from, kRow, step.step,
        (wait.end_seconds - wait.begin_seconds) * 1e3);
    if (to - from > kMinLabelledWait) {
      svg += SvgText((from + to) / 2, top + kRow / 2 + 4, "middle", "waits", "waits");
    }
  }
  computes_until(x + width);
  if (widest > kMinLabelWidth) {
    svg += SvgText(label, top + kRow / 2 + 4, "middle", "block", absl::StrCat(step.step));
  }
  return svg;
}

std::string Group(const DrawnWorkers& job, std::optional<uint32_t> slow, double top,
                  const Axis& axis) {
  std::string svg = SvgText(kLeft, top + kTitle - 9, "start", "name", job.name);
  svg += SvgText(kLeft + 8.4 * static_cast<double>(job.name.size()) + 14, top + kTitle - 9, "start",
                 "small", job.note);
  double row = top + kTitle;
  for (const WorkerTimeline& worker : *job.workers) {
    const bool is_slow = slow == worker.virtual_worker;
    svg += SvgText(kLeft - 8, row + kRow / 2 + 4, "end", is_slow ? "slowname" : "small",
                   absl::StrCat("worker ", worker.virtual_worker));
    svg += SvgRect(kLeft, row, kPictureWidth - kLeft - kRight, kRow, "row");
    for (const WorkerStep& step : worker.steps) svg += Step(step, is_slow, row, axis);
    row += kRow + kRowGap;
  }
  return svg;
}

}  // namespace

std::string WorkerTimelinesSvg(const std::vector<DrawnWorkers>& jobs, size_t steps,
                               std::optional<uint32_t> slow) {
  std::vector<DrawnWorkers> drawn;
  Axis axis{.seconds = 0};
  double bottom = 0;
  for (const DrawnWorkers& job : jobs) {
    if (job.workers == nullptr || job.workers->empty()) continue;
    drawn.push_back(job);
    axis.seconds = std::max(axis.seconds, EndOfSteps(*job.workers, steps));
    bottom += kTitle + static_cast<double>(job.workers->size()) * (kRow + kRowGap) + kGroupGap;
  }
  if (drawn.empty() || axis.seconds <= 0) return "";
  std::string svg;
  for (const double ms : NiceTicks(0, axis.seconds * 1e3, kTicks)) {
    const double x = axis.X(ms * 1e-3);
    svg += SvgLine(x, 0, x, bottom, "grid");
    svg += SvgText(x, bottom + 16, "middle", "small", absl::StrFormat("%g", ms + 0.0));  // no -0
  }
  svg += SvgText(kPictureWidth - kRight, bottom + 32, "end", "small",
                 "ms since the first worker began");
  double top = 0;
  for (const DrawnWorkers& job : drawn) {
    svg += Group(job, slow, top, axis);
    top += kTitle + static_cast<double>(job.workers->size()) * (kRow + kRowGap) + kGroupGap;
  }
  return SvgPicture(bottom + kAxis, svg);
}

}  // namespace tug
