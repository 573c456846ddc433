#include "experiment/scheduling_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/median.h"
#include "base/xml_text.h"
#include "coordinator/loss_curve.h"
#include "experiment/report_page.h"
#include "experiment/svg.h"
#include "experiment/timeline_svg.h"

namespace tug {
namespace {

constexpr double kLeft = 196, kRight = 270;
constexpr double kBar = 17, kBarGap = 4, kCaseGap = 16, kAxis = 36;

std::string Table(const SchedulingResults& results) {
  const std::vector<std::vector<std::string>> table = ResultsTable(results);
  std::vector<size_t> groups;  // a line above each case
  for (size_t i = 2; i < table.size(); ++i) {
    if (table[i][0] != table[i - 1][0] || table[i][1] != table[i - 1][1]) groups.push_back(i);
  }
  return TableHtml(table, groups);
}

std::string Bar(const SchedulingCase& c, const PolicyResult& p, double top, double scale) {
  const double seconds = p.seconds();
  const double waits = std::min(seconds, std::max(0.0, Median(p.steps.exposed_seconds)));
  const auto [least, most] = std::minmax_element(p.steps.seconds.begin(), p.steps.seconds.end());
  std::string svg = SvgText(kLeft - 8, top + kBar - 4, "end", "small", p.policy);
  svg += SvgRect(kLeft, top, (seconds - waits) * scale, kBar, "busy");
  svg += SvgRect(kLeft + (seconds - waits) * scale, top, waits * scale, kBar, "wait");
  const double middle = top + kBar / 2;
  svg += SvgLine(kLeft + *least * scale, middle, kLeft + *most * scale, middle, "range");
  std::string label = absl::StrFormat("%.0f ms", seconds * 1e3);
  if (const auto over = c.OverBound(p)) absl::StrAppendFormat(&label, ", %.2f x bound", *over);
  if (const auto speed_up = c.SpeedUp(p); speed_up.has_value() && p.policy != kFifoPolicy) {
    absl::StrAppendFormat(&label, ", speed-up %.2f", *speed_up);
  }
  return svg + SvgText(kLeft + *most * scale + 8, top + kBar - 4, "start", "small", label);
}

std::string CaseSection(const SchedulingCase& c) {
  std::vector<DrawnTimeline> drawn;
  for (const PolicyResult& p : c.policies) {
    drawn.push_back({p.Label(), &p.timeline,
                     absl::StrFormat("this step %.0f ms, median %.0f ms", p.timeline.seconds * 1e3,
                                     p.seconds() * 1e3)});
  }
  if (c.bound.has_value()) {
    drawn.push_back({"ideal", &c.bound->timeline,
                     absl::StrFormat("the fluid schedule on the busiest link, %.0f ms: no schedule "
                                     "is faster",
                                     c.bound->seconds * 1e3)});
  }
  return absl::StrFormat(
             "<h2>%s</h2>\n<p class=\"note\">%d blocks, %.2f MB (sizes x %.4g), %.0f ms of compute "
             "a step (times x %.4g), %.0f ms for a step's bytes one way over the busiest link. "
             "Sizes: %s.</p>\n<div class=\"card\">\n",
             XmlEscaped(CaseTitle(c)), c.blocks.size(), c.scale.model_bytes * 1e-6,
             c.scale.size_scale, c.scale.compute_seconds * 1e3, c.scale.time_scale,
             c.scale.transfer_seconds * 1e3, GrainText(c.grain)) +
         TimelinesSvg(drawn, c.blocks,
                      c.bound.has_value() ? std::optional(c.bound->seconds) : std::nullopt) +
         "</div>\n";
}

// What colours and rows of the timelines mean.
std::string Legend() {
  constexpr size_t kShades = 6;
  std::string ramp;
  for (size_t i = 0; i < kShades; ++i) {
    absl::StrAppend(&ramp, i == 0 ? "" : ", ", BlockColor(i, kShades, true));
  }
  return absl::StrCat(
      "<h2>Timelines</h2>\n<p>One worker, from the beginning of a backward pass to the end of the "
      "forward pass that needs what came of it. Colour is the block: ",
      Swatch(absl::StrCat("width:96px;background:linear-gradient(to right, ", ramp, ")")),
      "from the first, which is needed first, to the last. Light is forward, dark is backward. ",
      WaitSwatch(),
      "waits for weights: exposed communication. Push and pull are drawn by arrival: a partition "
      "from when the one before it had arrived. ",
      Swatch("height:0;border-top:2px dashed var(--bound);margin-bottom:4px"),
      "the lower bound.</p>\n");
}

}  // namespace

std::string StepBarsSvg(const SchedulingResults& results) {
  double most = 0, height = 0;
  for (const SchedulingCase& c : results.cases) {
    size_t bars = 0;
    for (const PolicyResult& p : c.policies) {
      if (p.steps.seconds.empty()) continue;
      ++bars;
      most = std::max(most, *std::max_element(p.steps.seconds.begin(), p.steps.seconds.end()));
    }
    if (bars > 0) height += static_cast<double>(bars) * (kBar + kBarGap) + kCaseGap;
  }
  if (most <= 0) return "";
  const double scale = (kPictureWidth - kLeft - kRight) / most;
  std::string svg;
  for (const double tick : NiceTicks(0, most * 1e3, 8)) {
    const double x = kLeft + tick * 1e-3 * scale;
    svg += SvgLine(x, 0, x, height, "grid");
    svg += SvgText(x, height + 16, "middle", "small", absl::StrFormat("%g", tick + 0.0));  // no -0
  }
  svg += SvgText(kLeft + most * scale, height + 32, "end", "small", "step time, ms");
  double top = 0;
  for (const SchedulingCase& c : results.cases) {
    const double begin = top;
    for (const PolicyResult& p : c.policies) {
      if (p.steps.seconds.empty()) continue;
      if (top == begin) svg += SvgText(0, top + kBar - 4, "start", "", CaseTitle(c));
      svg += Bar(c, p, top, scale);
      top += kBar + kBarGap;
    }
    if (top == begin) continue;
    if (c.bound.has_value()) {
      const double x = kLeft + c.bound->seconds * scale;
      svg += SvgLine(x, begin - 3, x, top, "bound");
    }
    top += kCaseGap;
  }
  return SvgPicture(height + kAxis, svg, /*above=*/4);
}

std::string SchedulingReportHtml(const SchedulingResults& results) {
  std::string html = absl::StrCat(
      PageBegin("Communication scheduling"),
      "<p class=\"note\">Replay: workers sleep through a model's times and exchange real "
      "bytes.</p>\n",
      SettingsHtml(results.settings, results.command));
  if (results.cases.empty()) {
    return html + "<p>Nothing has been measured yet.</p>\n" + PageEnd();
  }
  absl::StrAppend(&html,
                  "<h2>Step times</h2>\n<p>Median of the measured steps, with their range (thin "
                  "line); of that, exposed communication is hatched. Ratio: the time of a step's "
                  "bytes one way over the busiest link, to the compute time of a step. Speed-up: "
                  "fifo's step time over the policy's. The dashed line is the lower bound.</p>\n"
                  "<div class=\"card\">\n",
                  StepBarsSvg(results), "</div>\n<p></p>\n", Table(results), Legend());
  for (const SchedulingCase& c : results.cases) absl::StrAppend(&html, CaseSection(c));
  return html + PageEnd();
}

}  // namespace tug
