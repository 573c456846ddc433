// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/worker_timeline_svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"

namespace tug {
namespace {

constexpr double kMinWait = 0.0025;  // of a drawn wait, as a part of the whole time

// `max_ms`: end of the axis.
void AddStep(const WorkerStep& step, bool slow, const ChartRange& row, double max_ms,
             Chart& chart) {
  const double begin = step.whole.begin_seconds * 1e3, end = step.whole.end_seconds * 1e3;
  chart.boxes.push_back(
      {.x = {begin, end},
       .y = row,
       .title = absl::StrFormat("step %d, %.1f to %.1f ms", step.step, begin, end),
       .style = slow ? "slowstep" : "step"});
  // The number is placed in the longest part without a wait.
  double computes_from = begin;
  ChartRange longest;
  const auto computes_until = [&](double until) {
    const ChartRange part{computes_from, std::min(until, max_ms)};
    if (part.end - part.begin > longest.end - longest.begin) longest = part;
  };
  for (const TimeRange& wait : step.waits) {
    const ChartRange x{wait.begin_seconds * 1e3, wait.end_seconds * 1e3};
    const double length = x.end - x.begin;
    if (length < kMinWait * max_ms) continue;
    computes_until(x.begin);
    computes_from = x.end;
    chart.boxes.push_back(
        {.x = x,
         .y = row,
         .title = absl::StrFormat("step %d waits for weights, %.1f ms", step.step, length),
         .text = "waits"});
  }
  computes_until(end);
  chart.boxes.push_back({.x = longest, .y = row, .color = "none", .text = absl::StrCat(step.step)});
}

Chart ChartOf(const DrawnWorkers& job, std::optional<uint32_t> slow, double max_ms) {
  Chart chart = RowsChart(job.name, "time since the first worker began (ms)");
  chart.note = job.note;
  chart.x.range = {0, max_ms};
  for (const WorkerTimeline& worker : *job.workers) {
    const bool is_slow = slow == worker.virtual_worker;
    const ChartRange row =
        AddRow(chart, absl::StrCat("worker ", worker.virtual_worker),
               {.height = 22, .gap = 3, .shaded = true, .style = is_slow ? "slowname" : "small"});
    for (const WorkerStep& step : worker.steps) AddStep(step, is_slow, row, max_ms, chart);
  }
  return chart;
}

}  // namespace

std::string WorkerTimelinesSvg(const std::vector<DrawnWorkers>& jobs, size_t steps,
                               std::optional<uint32_t> slow) {
  double seconds = 0;
  for (const DrawnWorkers& job : jobs) {
    if (job.workers != nullptr) seconds = std::max(seconds, EndOfSteps(*job.workers, steps));
  }
  if (seconds <= 0) return "";
  std::vector<Chart> charts;
  for (const DrawnWorkers& job : jobs) {
    if (job.workers == nullptr || job.workers->empty()) continue;
    charts.push_back(ChartOf(job, slow, seconds * 1e3));
  }
  return ChartsSvg(charts, {.left = 84, .same_x = true});
}

}  // namespace tug
