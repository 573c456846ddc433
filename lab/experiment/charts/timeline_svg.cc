// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/timeline_svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"

namespace tug {
namespace {

using Row = TimelineSpan::Row;

constexpr RowLook kRow = {.height = 22, .gap = 3, .shaded = true, .style = "small"};
// Parts of the whole time; what is shorter is not drawn.
constexpr double kMinSpan = 0.00015, kMinWait = 0.004;

// Names of rows.
constexpr const char* kNames[] = {"forward", "backward", "push", "pull"};

ChartBox SpanBox(const TimelineSpan& span, const std::vector<std::string>& block_names,
                 const ChartRange& row) {
  const double begin = span.begin_seconds * 1e3, end = span.end_seconds * 1e3;
  const std::string name =
      span.block < block_names.size() ? block_names[span.block] : absl::StrCat(span.block);
  return {.x = {begin, end},
          .y = row,
          .color = BlockColor(span.block, block_names.size(), span.row != Row::kForward),
          .title = absl::StrFormat("%s %s, %.1f to %.1f ms", kNames[static_cast<size_t>(span.row)],
                                   name, begin, end),
          .text = name,
          .style = "span"};
}

// Spans of computing, in order, and the waits between them.
void AddCompute(const Timeline& timeline, const std::vector<std::string>& block_names,
                double least_wait, Chart& chart) {
  std::vector<TimelineSpan> spans;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.row == Row::kForward || span.row == Row::kBackward) spans.push_back(span);
  }
  std::stable_sort(spans.begin(), spans.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
    return a.begin_seconds < b.begin_seconds;
  });
  const ChartRange row = AddRow(chart, "compute", kRow);
  double busy_until = 0;
  for (const TimelineSpan& span : spans) {
    const double wait = span.begin_seconds - busy_until;
    if (wait > least_wait) {
      chart.boxes.push_back({.x = {busy_until * 1e3, span.begin_seconds * 1e3},
                             .y = row,
                             .title = absl::StrFormat("waits for weights, %.1f ms", wait * 1e3),
                             .text = "waits"});
    }
    busy_until = std::max(busy_until, span.end_seconds);
    chart.boxes.push_back(SpanBox(span, block_names, row));
  }
}

// `all_seconds`: of the longest timeline.
Chart ChartOf(const DrawnTimeline& drawn, const std::vector<std::string>& block_names,
              double all_seconds) {
  Chart chart = RowsChart(drawn.name, "time since the beginning of the backward pass (ms)");
  chart.note = drawn.note;
  chart.x.margin = 0.02;
  AddCompute(*drawn.timeline, block_names, kMinWait * all_seconds, chart);
  for (const Row kind : {Row::kPush, Row::kPull}) {
    const ChartRange row = AddRow(chart, kNames[static_cast<size_t>(kind)], kRow);
    for (const TimelineSpan& span : InSequence(*drawn.timeline, kind)) {
      if (span.end_seconds - span.begin_seconds < kMinSpan * all_seconds) continue;
      chart.boxes.push_back(SpanBox(span, block_names, row));
    }
  }
  const double end = drawn.timeline->seconds * 1e3;
  chart.rules.push_back({{end, end}, kWholeAxis, "end"});
  return chart;
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
  double seconds = 0;
  for (const DrawnTimeline& one : timelines) {
    if (one.timeline != nullptr) seconds = std::max(seconds, one.timeline->seconds);
  }
  std::vector<Chart> charts;
  for (const DrawnTimeline& one : timelines) {
    if (one.timeline == nullptr || one.timeline->empty()) continue;
    charts.push_back(ChartOf(one, block_names, seconds));
    if (!bound_seconds.has_value()) continue;
    const double bound = *bound_seconds * 1e3;
    charts.back().rules.push_back({{bound, bound}, kWholeAxis, "bound"});
  }
  const std::string svg = ChartsSvg(charts, {.left = 74, .same_x = true});
  return svg.empty() ? "<p class=\"note\">No timeline was recorded.</p>\n" : svg;
}

}  // namespace tug
