// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/exchange_charts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/measures/measure.h"

namespace tug {
namespace {

constexpr double kMb = 1e-6;
constexpr double kMaxSpread = 5;  // factor between drawn and measured sizes, in both directions
constexpr uint32_t kMaxWorkersFactor = 8;
constexpr size_t kPointsOfALine = 24;
constexpr double kSameSize = 0.01;  // relative; sizes that differ by less count as equal

constexpr double kHostBar = 7, kHostGap = 2, kCaseGap = 11;
constexpr double kLeft = 170, kRight = 250;

using Points = std::vector<const ExchangePoint*>;

std::string ColorOf(const ExchangePoint& point) {
  return SeriesColor(static_cast<size_t>(point.exchange.kind));
}

// The first point of each name.
Points FirstOfEach(const Points& points) {
  Points first;
  for (const ExchangePoint* point : points) {
    if (std::none_of(first.begin(), first.end(),
                     [&](const ExchangePoint* other) { return other->name == point->name; })) {
      first.push_back(point);
    }
  }
  return first;
}

// Curves of each name over `xs`, which are numbers of workers or bytes of a model, with `fixed` for
// everything else, and a dot for each point there that was measured.
Chart CurvesOf(const Points& points, const ExchangePoint& fixed, bool over_workers,
               const std::vector<double>& xs) {
  Chart chart{
      .title = over_workers ? absl::StrFormat("link %s, a model of %.3g MB", fixed.link,
                                              fixed.model_bytes * kMb)
                            : absl::StrCat("link ", fixed.link, ", ", fixed.workers, " workers"),
      .height = 300,
      .x = {.name = over_workers ? "workers" : "model size (MB)", .log = true},
      .y = {.name = MeasureHeading("step_time"), .log = true, .margin = 0.04, .grid = true}};
  const double scale = over_workers ? 1 : kMb;
  for (const ExchangePoint* of : FirstOfEach(points)) {
    ChartLine line{.color = ColorOf(*of), .title = of->name, .named = true};
    ChartLine dashed{.color = line.color, .title = of->name, .style = LineStyle::kDashed};
    for (const double x : xs) {
      const ExchangeCost cost =
          CostOfExchange(of->exchange, over_workers ? static_cast<uint32_t>(x) : fixed.workers,
                         over_workers ? fixed.model_bytes : x, *fixed.link_cost);
      line.points.push_back({x * scale, cost.seconds * 1e3});
      dashed.points.push_back({x * scale, cost.overlapped_seconds * 1e3});
    }
    for (const ExchangePoint* point : points) {
      const bool is_there = over_workers
                                ? std::abs(point->model_bytes / fixed.model_bytes - 1) <= kSameSize
                                : point->workers == fixed.workers;
      if (!is_there || point->name != of->name || !point->step_ms.has_value()) continue;
      const double x = over_workers ? point->workers : point->model_bytes;
      const double ms = point->step_ms->median;
      chart.dots.push_back(
          {{x * scale, ms}, line.color, absl::StrFormat("%s: %.4g", of->name, ms)});
    }
    chart.lines.push_back(std::move(dashed));
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

// With the number of workers of the first point.
Chart SizeCurves(const Points& points) {
  const ExchangePoint& fixed = *points.front();
  double least = fixed.model_bytes, most = least;
  for (const ExchangePoint* point : points) {
    least = std::min(least, point->model_bytes);
    most = std::max(most, point->model_bytes);
  }
  const double from = least / kMaxSpread, to = most * kMaxSpread;
  std::vector<double> sizes;
  for (size_t i = 0; i <= kPointsOfALine; ++i) {
    sizes.push_back(from * std::pow(to / from, static_cast<double>(i) / kPointsOfALine));
  }
  return CurvesOf(points, fixed, false, sizes);
}

// With the largest model.
Chart WorkersCurves(const Points& points) {
  const ExchangePoint& fixed = **std::max_element(
      points.begin(), points.end(),
      [](const auto* a, const auto* b) { return a->model_bytes < b->model_bytes; });
  uint32_t most = 1;
  for (const ExchangePoint* point : points) most = std::max(most, point->workers);
  // Powers of two: between them, halving-doubling has corners.
  std::vector<double> counts;
  for (uint32_t workers = 2; workers <= most * kMaxWorkersFactor; workers *= 2) {
    counts.push_back(workers);
  }
  return CurvesOf(points, fixed, true, counts);
}

// Adds bars of a point's hosts, with a mark at the formula's busiest host.
void AddHosts(const ExchangePoint& point, Chart& chart) {
  const double top = chart.height;
  double bottom = top, longest = 0;
  for (size_t host = 0; host < point.hosts.size(); ++host) {
    const double mb = point.hosts[host].sends * kMb;
    const bool alone = point.exchange.HasServerAlone(static_cast<uint32_t>(host), point.workers);
    const bool last = host + 1 == point.hosts.size();
    const ChartRange row = AddRow(chart, host == point.hosts.size() / 2 ? point.name : "",
                                  {.height = kHostBar, .gap = last ? kCaseGap : kHostGap});
    chart.boxes.push_back({{0, mb},
                           row,
                           alone ? "var(--busy)" : ColorOf(point),
                           absl::StrFormat("host %d, %s: %.2f MB per step", host + 1,
                                           alone ? "a server" : "a worker", mb)});
    longest = std::max(longest, mb);
    bottom = row.end;
  }
  const double busiest = std::max(point.cost->worker.sends, point.cost->server.sends) * kMb;
  chart.rules.push_back({{busiest, busiest}, {top - 3, bottom + 3}, "bound", RuleEnds::kHalo});
  chart.texts.push_back({{std::max(longest, busiest), (top + bottom) / 2},
                         absl::StrFormat("%.2f MB, by formula %.2f", longest, busiest)});
}

struct HeldKind {
  const char* name;
  uint64_t NodeHeldBytes::*bytes;
  size_t series;
};
constexpr HeldKind kHeldKinds[] = {{"weights", &NodeHeldBytes::weights, 0},
                                   {"gradients", &NodeHeldBytes::gradients, 1},
                                   {"optimizer state", &NodeHeldBytes::optimizer, 2},
                                   {"sums", &NodeHeldBytes::sums, 3}};

Bar MemoryBar(const std::string& name, const NodeHeldBytes& held) {
  Bar bar{.name = name};
  for (const HeldKind& kind : kHeldKinds) {
    const double mb = static_cast<double>(held.*kind.bytes) * kMb;
    if (mb <= 0) continue;
    bar.parts.push_back(
        {mb, SeriesColor(kind.series), absl::StrFormat("%s: %s %.2f MB", name, kind.name, mb)});
  }
  bar.label = absl::StrFormat("%.2f MB", static_cast<double>(held.total()) * kMb);
  if (held.predicted > 0) {
    bar.marks = {{static_cast<double>(held.predicted) * kMb, "bound"}};
    absl::StrAppendFormat(&bar.label, ", by formula %.2f",
                          static_cast<double>(held.predicted) * kMb);
  }
  return bar;
}

}  // namespace

std::string StepTimesSvg(const std::vector<ExchangePoint>& points) {
  std::vector<Chart> charts;
  for (const Points& group : GroupsOf(points)) {
    Chart chart = RowsChart(group.front()->group, MeasureHeading("step_time"));
    for (const ExchangePoint* point : group) {
      if (!point->step_ms.has_value()) continue;
      Bar bar{.name = point->name, .label = absl::StrFormat("%.1f ms", point->step_ms->median)};
      if (point->cost.has_value()) {
        const double seconds = point->cost->seconds;
        const double overlapped = point->cost->overlapped_seconds;
        bar.marks = {{overlapped * 1e3, "bound"}, {seconds * 1e3, "end"}};
        absl::StrAppendFormat(&bar.label, ", alpha-beta %.1f, %.1f", seconds * 1e3,
                              overlapped * 1e3);
      }
      bar.parts = {{point->step_ms->median, ColorOf(*point),
                    absl::StrCat(bar.name, ": ", SpreadText(point->step_ms, 1), " ms")}};
      AddBar(chart, bar);
    }
    charts.push_back(std::move(chart));
  }
  return ChartsSvg(charts, {.left = kLeft, .right = kRight});
}

std::string AlphaBetaSvg(const std::vector<ExchangePoint>& points) {
  std::vector<Points> links;
  for (const ExchangePoint& point : points) {
    if (!point.cost.has_value()) continue;
    auto link = std::find_if(links.begin(), links.end(), [&](const Points& other) {
      return other.front()->link == point.link;
    });
    if (link == links.end()) link = links.emplace(links.end());
    link->push_back(&point);
  }
  std::vector<Chart> charts;
  for (const Points& link : links) {
    charts.push_back(SizeCurves(link));
    charts.push_back(WorkersCurves(link));
  }
  return ChartsSvg(charts, {.columns = 2, .left = 62, .right = 122, .between = 200});
}

std::string HostBytesSvg(const std::vector<ExchangePoint>& points) {
  Chart chart = RowsChart("", "sent per step (MB)");
  for (const ExchangePoint& point : points) {
    if (point.hosts.empty() || !point.cost.has_value()) continue;
    if (chart.title.empty()) chart.title = point.group;
    if (chart.title == point.group) AddHosts(point, chart);
  }
  return ChartsSvg({chart}, {.left = kLeft, .right = kRight});
}

std::string MemorySvg(const std::vector<ExchangePoint>& points) {
  Chart workers = RowsChart("a worker", "memory (MB)"),
        servers = RowsChart("a server", "memory (MB)");
  for (const ExchangePoint* point : MemoryPoints(points)) {
    AddBar(workers, MemoryBar(point->name, *point->worker_held));
    if (point->server_held.has_value()) {
      AddBar(servers, MemoryBar(point->name, *point->server_held));
    }
  }
  ChartGrid grid{.left = kLeft, .right = kRight};
  for (const HeldKind& kind : kHeldKinds) {
    grid.legend.emplace_back(kind.name, SeriesColor(kind.series));
  }
  return ChartsSvg({workers, servers}, grid);
}

}  // namespace tug
