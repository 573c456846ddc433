#include "experiment/scheduling_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/median.h"
#include "base/xml_text.h"
#include "coordinator/loss_curve.h"
#include "experiment/svg_text.h"
#include "experiment/timeline_svg.h"

namespace tug {
namespace {

constexpr char kStyle[] = R"css(
:root { color-scheme: light dark; --ink: #1d2530; --soft: #5b6675; --page: #ffffff; --card: #f6f7f9;
  --grid: #dfe3e8; --wait: #d4493a; --bound: #0b7a4b; --busy: #7c94b5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e9ef; --soft: #9aa6b5; --page: #14181e;
  --card: #1c222a; --grid: #333c47; --wait: #ff7b6b; --bound: #4fd19a; --busy: #6d86a8; } }
body { margin: 0 auto; padding: 24px; max-width: 1152px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 6px; }
p { margin: 6px 0 12px; max-width: 900px; } .note { color: var(--soft); }
code { font: 13px ui-monospace, Menlo, Consolas, monospace; }
.card { background: var(--card); border-radius: 8px; padding: 12px 16px; overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto;
  font: 12px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 4px 12px 4px 0; text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; border-bottom: 1px solid var(--grid); }
td:nth-child(1), td:nth-child(3), th:nth-child(1), th:nth-child(3) { text-align: left; }
tr.first td { border-top: 1px solid var(--grid); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; }
text { fill: var(--ink); } text.small { fill: var(--soft); } text.name { font-weight: 600; font-size: 14px; }
text.block { fill: #17202b; font-size: 11px; } text.waits { font-size: 11px; paint-order: stroke;
  stroke: var(--card); stroke-width: 4px; }
rect.row { fill: var(--grid); opacity: 0.35; } rect.span { stroke: var(--card); stroke-width: 0.4; }
rect.wait { fill: url(#hatch); stroke: var(--wait); stroke-width: 0.6; }
rect.busy { fill: var(--busy); } line.grid { stroke: var(--grid); } line.end { stroke: var(--ink); stroke-width: 1.5; }
line.bound { stroke: var(--bound); stroke-width: 1.6; stroke-dasharray: 5 4; }
line.range { stroke: var(--ink); stroke-width: 1.4; }
.key { display: inline-block; width: 22px; height: 11px; margin: 0 5px 0 12px; border-radius: 2px; }
)css";

// Patterns that every picture of the page uses.
constexpr char kPatterns[] =
    "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>"
    "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"var(--card)\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"var(--wait)\" "
    "opacity=\"0.55\"/></pattern></defs></svg>\n";

constexpr double kWidth = 1120, kLeft = 196, kRight = 270;
constexpr double kBar = 17, kBarGap = 4, kCaseGap = 16, kAxis = 36;

std::string Settings(const SchedulingResults& results) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : results.settings) {
    absl::StrAppend(&html, "<dt>", XmlEscaped(name), "</dt><dd>", XmlEscaped(value), "</dd>\n");
  }
  return html + "<dt>command</dt><dd><code>" + XmlEscaped(results.command) +
         "</code></dd>\n</dl>\n";
}

std::string Table(const SchedulingResults& results) {
  const std::vector<std::vector<std::string>> table = ResultsTable(results);
  std::string html = "<div class=\"card\"><table>\n";
  for (size_t i = 0; i < table.size(); ++i) {
    const bool heading = i == 0;
    // A line above each case.
    const bool first = i > 1 && (table[i][0] != table[i - 1][0] || table[i][1] != table[i - 1][1]);
    absl::StrAppend(&html, first ? "<tr class=\"first\">" : "<tr>");
    for (const std::string& cell : table[i]) {
      absl::StrAppend(&html, heading ? "<th>" : "<td>", XmlEscaped(cell),
                      heading ? "</th>" : "</td>");
    }
    absl::StrAppend(&html, "</tr>\n");
  }
  return html + "</table></div>\n";
}

std::string Rect(double x, double y, double width, double height, const char* style) {
  return absl::StrFormat(
      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x, y,
      std::max(0.0, width), height, style);
}

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
                         x1, y1, x2, y2, style);
}

std::string Bar(const SchedulingCase& c, const PolicyResult& p, double top, double scale) {
  const double seconds = p.seconds();
  const double waits = std::min(seconds, std::max(0.0, Median(p.steps.exposed_seconds)));
  const auto [least, most] = std::minmax_element(p.steps.seconds.begin(), p.steps.seconds.end());
  std::string svg = SvgText(kLeft - 8, top + kBar - 4, "end", "small", p.policy);
  svg += Rect(kLeft, top, (seconds - waits) * scale, kBar, "busy");
  svg += Rect(kLeft + (seconds - waits) * scale, top, waits * scale, kBar, "wait");
  const double middle = top + kBar / 2;
  svg += Line(kLeft + *least * scale, middle, kLeft + *most * scale, middle, "range");
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

std::string Swatch(const std::string& style) {
  return "<span class=\"key\" style=\"" + style + "\"></span>";
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
      Swatch("background:repeating-linear-gradient(45deg, var(--wait) 0 2px, transparent 2px 5px)"),
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
  const double scale = (kWidth - kLeft - kRight) / most;
  std::string svg;
  for (const double tick : NiceTicks(0, most * 1e3, 8)) {
    const double x = kLeft + tick * 1e-3 * scale;
    svg += Line(x, 0, x, height, "grid");
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
      svg += Line(x, begin - 3, x, top, "bound");
    }
    top += kCaseGap;
  }
  return absl::StrFormat(
      "<svg viewBox=\"0 -4 %.0f %.0f\" width=\"%.0f\" role=\"img\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n%s</svg>\n",
      kWidth, height + kAxis + 4, kWidth, svg);
}

std::string SchedulingReportHtml(const SchedulingResults& results) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>Communication scheduling</title>\n<style>",
      kStyle, "</style>\n</head>\n<body>\n", kPatterns,
      "<h1>Communication scheduling</h1>\n"
      "<p class=\"note\">Replay: workers sleep through a model's times and exchange real "
      "bytes.</p>\n",
      Settings(results));
  if (results.cases.empty()) {
    return html + "<p>Nothing has been measured yet.</p>\n</body>\n</html>\n";
  }
  absl::StrAppend(&html,
                  "<h2>Step times</h2>\n<p>Median of the measured steps, with their range (thin "
                  "line); of that, exposed communication is hatched. Ratio: the time of a step's "
                  "bytes one way over the busiest link, to the compute time of a step. Speed-up: "
                  "fifo's step time over the policy's. The dashed line is the lower bound.</p>\n"
                  "<div class=\"card\">\n",
                  StepBarsSvg(results), "</div>\n<p></p>\n", Table(results), Legend());
  for (const SchedulingCase& c : results.cases) absl::StrAppend(&html, CaseSection(c));
  return html + "</body>\n</html>\n";
}

}  // namespace tug
