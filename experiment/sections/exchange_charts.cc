// SPDX-License-Identifier: Apache-2.0
#include "experiment/sections/exchange_charts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/bar_group.h"
#include "experiment/charts/curve_panels.h"
#include "experiment/charts/report_page.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kMb = 1e-6;
constexpr double kMaxSpread = 5;  // factor between drawn and measured sizes, in both directions
constexpr uint32_t kMaxWorkersFactor = 8;
constexpr size_t kPointsOfALine = 24;
constexpr double kSameSize = 0.01;  // relative; sizes that differ by less count as equal

// Layout of the hosts' bars.
constexpr double kLeft = 170, kRight = 250;
constexpr double kHostBar = 7, kHostGap = 2, kCaseGap = 9, kGroupTitle = 24, kAxis = 44;
constexpr double kHalo = 5;  // around the mark of the formula

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

using CostAt = ExchangeCost (*)(const ExchangePoint& of, double x, const ExchangePoint& fixed);

struct Axis {
  const char* name;
  std::vector<double> xs;
  double scale;
};

// A panel with a curve for each name over the axis, with `fixed` for everything else, and a dot for
// each point with an `x_of`.
template <typename XOf>
CurvePanel PanelOf(const Points& points, const std::string& title, const Axis& axis, CostAt cost_at,
                   const ExchangePoint& fixed, const XOf& x_of) {
  CurvePanel panel{title, axis.name, "ms per step", {}};
  for (const ExchangePoint* of : FirstOfEach(points)) {
    Curve curve{of->name, ColorOf(*of), {}, {}, {}};
    for (const double x : axis.xs) {
      const ExchangeCost cost = cost_at(*of, x, fixed);
      curve.line.push_back({x * axis.scale, cost.seconds * 1e3});
      curve.dashed.push_back({x * axis.scale, cost.overlapped_seconds * 1e3});
    }
    for (const ExchangePoint* point : points) {
      const std::optional<double> x = x_of(*point);
      if (point->name != of->name || !x.has_value() || !point->step_ms.has_value()) continue;
      curve.dots.push_back({*x * axis.scale, point->step_ms->median});
    }
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

// Panel over model sizes, with the number of workers of the first point.
CurvePanel SizePanel(const Points& points) {
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
  return PanelOf(
      points, absl::StrCat("link ", fixed.link, ", ", fixed.workers, " workers"),
      {"model size, MB", sizes, kMb},
      [](const ExchangePoint& of, double bytes, const ExchangePoint& one) {
        return CostOfExchange(of.exchange, one.workers, bytes, *one.link_cost);
      },
      fixed,
      [&](const ExchangePoint& point) -> std::optional<double> {
        if (point.workers != fixed.workers) return std::nullopt;
        return point.model_bytes;
      });
}

// Panel over numbers of workers, with the largest model.
CurvePanel WorkersPanel(const Points& points) {
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
  return PanelOf(
      points, absl::StrFormat("link %s, a model of %.3g MB", fixed.link, fixed.model_bytes * kMb),
      {"workers", counts, 1},
      [](const ExchangePoint& of, double workers, const ExchangePoint& one) {
        return CostOfExchange(of.exchange, static_cast<uint32_t>(workers), one.model_bytes,
                              *one.link_cost);
      },
      fixed,
      [&](const ExchangePoint& point) -> std::optional<double> {
        if (std::abs(point.model_bytes / fixed.model_bytes - 1) > kSameSize) return std::nullopt;
        return point.workers;
      });
}

// Bars of a point's hosts from `top` down, with a mark at the formula's busiest host.
std::string HostBars(const ExchangePoint& point, double scale, double top) {
  std::string svg;
  double y = top;
  double longest = 0;
  for (size_t host = 0; host < point.hosts.size(); ++host) {
    const double bytes = point.hosts[host].sends;
    const bool alone = point.exchange.HasServerAlone(static_cast<uint32_t>(host), point.workers);
    svg += SvgBar(kLeft, y, bytes * scale, kHostBar, alone ? "var(--busy)" : ColorOf(point),
                  absl::StrFormat("host %d, %s: %.2f MB per step", host + 1,
                                  alone ? "a server" : "a worker", bytes * kMb));
    longest = std::max(longest, bytes);
    y += kHostBar + kHostGap;
  }
  const double busiest = std::max(point.cost->worker.sends, point.cost->server.sends);
  svg += SvgRect(kLeft + busiest * scale - kHalo / 2, top - 3, kHalo, y + 4 - top, "clear");
  svg += SvgLine(kLeft + busiest * scale, top - 3, kLeft + busiest * scale, y + 1, "bound");
  return svg + SvgText(kLeft + std::max(longest, busiest) * scale + 8, (top + y) / 2 + 4, "start",
                       "small",
                       absl::StrFormat("%.2f MB, by formula %.2f", longest * kMb, busiest * kMb));
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
  std::string svg;
  double top = 0;
  for (const Points& group : GroupsOf(points)) {
    std::vector<Bar> bars;
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
      bars.push_back(std::move(bar));
    }
    svg += BarGroupSvg(group.front()->group, bars, "ms per step", top);
  }
  return svg.empty() ? "" : SvgPicture(top, svg);
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
  std::vector<CurvePanel> panels;
  for (const Points& link : links) {
    panels.push_back(SizePanel(link));
    panels.push_back(WorkersPanel(link));
  }
  return CurvePanelsSvg(panels);
}

std::string HostBytesSvg(const std::vector<ExchangePoint>& points) {
  Points drawn;
  double most = 0;
  for (const ExchangePoint& point : points) {
    if (point.hosts.empty() || !point.cost.has_value()) continue;
    if (!drawn.empty() && drawn.front()->group != point.group) continue;
    drawn.push_back(&point);
    for (const HostBytes& host : point.hosts) most = std::max(most, host.sends);
    most = std::max({most, point.cost->worker.sends, point.cost->server.sends});
  }
  if (drawn.empty() || !(most > 0)) return "";
  const double scale = (kPictureWidth - kLeft - kRight) / most;
  std::string svg = SvgText(0, 16, "start", "name", drawn.front()->group);
  std::string bars;
  double top = kGroupTitle;
  for (const ExchangePoint* point : drawn) {
    const double height = static_cast<double>(point->hosts.size()) * (kHostBar + kHostGap);
    bars += SvgText(kLeft - 8, top + height / 2 + 4, "end", "", point->name);
    bars += HostBars(*point, scale, top);
    top += height + kCaseGap;
  }
  for (const double tick : NiceTicks(0, most * kMb, 8)) {
    const double x = kLeft + tick / kMb * scale;
    svg += SvgLine(x, kGroupTitle - 2, x, top, "grid");
    svg += SvgText(x, top + 14, "middle", "small", absl::StrFormat("%g", tick + 0.0));  // no -0
  }
  svg += SvgText(kPictureWidth - kRight + 24, top + 14, "start", "small", "MB sent per step");
  return SvgPicture(top + kAxis, svg + bars);
}

std::string MemorySvg(const std::vector<ExchangePoint>& points) {
  std::vector<Bar> workers, servers;
  for (const ExchangePoint* point : MemoryPoints(points)) {
    workers.push_back(MemoryBar(point->name, *point->worker_held));
    if (point->server_held.has_value()) {
      servers.push_back(MemoryBar(point->name, *point->server_held));
    }
  }
  double top = 0;
  std::string svg = BarGroupSvg("a worker", workers, "MB held", top);
  svg += BarGroupSvg("a server", servers, "MB held", top);
  return svg.empty() ? "" : SvgPicture(top, svg);
}

std::string MemoryLegend() {
  std::vector<std::string> names;
  for (const HeldKind& kind : kHeldKinds) names.push_back(kind.name);
  return SeriesLegend(names);
}

}  // namespace tug
