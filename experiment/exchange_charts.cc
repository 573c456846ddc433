#include "experiment/exchange_charts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/loss_curve.h"
#include "experiment/bar_group.h"
#include "experiment/curve_panels.h"
#include "experiment/exchange_text.h"
#include "experiment/report_page.h"
#include "experiment/svg.h"

namespace tug {
namespace {

constexpr double kMb = 1e-6;
constexpr double kMostSpread = 5;  // of sizes that are drawn, around those that were measured
constexpr uint32_t kMostWorkersTimes = 8;
constexpr size_t kPointsOfALine = 24;

// Of the hosts' bars.
constexpr double kLeft = 170, kRight = 250;
constexpr double kHostBar = 7, kHostGap = 2, kCaseGap = 9, kGroupTitle = 24, kAxis = 44;
constexpr double kHalo = 5;  // around the formula's mark

std::string ColorOf(const ExchangeCase& exchange) {
  return SeriesColor(static_cast<size_t>(exchange.kind));
}

double LargestSize(const ExchangeResults& results) {
  return results.sizes.empty() ? 0 : *std::max_element(results.sizes.begin(), results.sizes.end());
}

// Of a link's runs that ended: what their models are, bytes.
std::vector<double> MeasuredSizes(const ExchangeResults& results, const std::string& link) {
  std::vector<double> sizes;
  for (const ExchangeRun& run : results.runs) {
    if (run.link == link && run.error.empty() && run.ModelBytes() > 0) {
      sizes.push_back(run.ModelBytes());
    }
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

CurvePanel SizePanel(const ExchangeResults& results, const std::string& link,
                     const std::vector<double>& sizes, const LinkCost& cost) {
  CurvePanel panel{absl::StrCat("link ", link, ", ", results.workers, " workers"),
                   "MB of a model",
                   "ms a step",
                   {}};
  const double from = sizes.front() / kMostSpread, to = sizes.back() * kMostSpread;
  for (const ExchangeCase& exchange : results.cases) {
    Curve curve{exchange.name, ColorOf(exchange), {}, {}, {}};
    for (size_t i = 0; i <= kPointsOfALine; ++i) {
      const double bytes =
          from * std::pow(to / from, static_cast<double>(i) / static_cast<double>(kPointsOfALine));
      const ExchangeCost at = CostOfExchange(exchange, results.workers, bytes, cost);
      curve.line.push_back({bytes * kMb, at.seconds * 1e3});
      curve.dashed.push_back({bytes * kMb, at.overlapped_seconds * 1e3});
    }
    for (const ExchangeRun& run : results.runs) {
      if (run.link != link || !(run.exchange == exchange)) continue;
      curve.dots.push_back({run.ModelBytes() * kMb, run.StepSeconds() * 1e3});
    }
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

CurvePanel WorkersPanel(const ExchangeResults& results, const std::string& link, double bytes,
                        const LinkCost& cost) {
  CurvePanel panel{absl::StrFormat("link %s, a model of %.3g MB", link, bytes * kMb),
                   "workers",
                   "ms a step",
                   {}};
  const uint32_t most = std::max<uint32_t>(results.workers * kMostWorkersTimes, 2);
  for (const ExchangeCase& exchange : results.cases) {
    Curve curve{exchange.name, ColorOf(exchange), {}, {}, {}};
    // Powers of two: between them halving and doubling has corners.
    for (uint32_t workers = 2; workers <= most; workers *= 2) {
      const ExchangeCost at = CostOfExchange(exchange, workers, bytes, cost);
      curve.line.push_back({static_cast<double>(workers), at.seconds * 1e3});
      curve.dashed.push_back({static_cast<double>(workers), at.overlapped_seconds * 1e3});
    }
    for (const ExchangeRun& run : results.runs) {
      if (run.link != link || !(run.exchange == exchange) || run.ModelBytes() != bytes) continue;
      curve.dots.push_back({static_cast<double>(run.workers), run.StepSeconds() * 1e3});
    }
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

// Bars of a run's hosts from `top` down, and the formula's busiest across them.
std::string HostBars(const ExchangeRun& run, const ExchangeCost& cost, double scale, double top) {
  std::string svg;
  double y = top;
  double longest = 0;
  for (size_t host = 0; host < run.hosts.size(); ++host) {
    const double bytes = run.HostSentBytes(host).value_or(0);
    const bool alone = run.exchange.HasServerAlone(static_cast<uint32_t>(host), run.workers);
    svg += SvgBar(kLeft, y, bytes * scale, kHostBar, alone ? "var(--busy)" : ColorOf(run.exchange),
                  absl::StrFormat("host %d, %s: %.2f MB a step", host + 1,
                                  alone ? "a server" : "a worker", bytes * kMb));
    longest = std::max(longest, bytes);
    y += kHostBar + kHostGap;
  }
  const double busiest = std::max(cost.worker.sends, cost.server.sends);
  svg += SvgRect(kLeft + busiest * scale - kHalo / 2, top - 3, kHalo, y + 4 - top, "clear");
  svg += SvgLine(kLeft + busiest * scale, top - 3, kLeft + busiest * scale, y + 1, "bound");
  return svg + SvgText(kLeft + std::max(longest, busiest) * scale + 8, (top + y) / 2 + 4, "start",
                       "small",
                       absl::StrFormat("%.2f MB, by formula %.2f", longest * kMb, busiest * kMb));
}

struct HeldKind {
  const char* name;
  uint64_t HeldBytes::*bytes;
  size_t series;
};
constexpr HeldKind kHeldKinds[] = {{"weights", &HeldBytes::weights, 0},
                                   {"gradients", &HeldBytes::gradients, 1},
                                   {"optimizer state", &HeldBytes::optimizer, 2},
                                   {"sums", &HeldBytes::sums, 3}};

Bar MemoryBar(const std::string& name, const HeldBytes& held) {
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

std::string StepTimesSvg(const ExchangeResults& results) {
  std::string svg;
  double top = 0;
  for (const std::string& link : results.link_names) {
    for (const double size : results.sizes) {
      std::vector<Bar> bars;
      for (const ExchangeCase& exchange : results.cases) {
        const ExchangeRun* run = results.Find(exchange, link, size);
        if (run == nullptr || !(run->StepSeconds() > 0)) continue;
        const double ms = run->StepSeconds() * 1e3;
        Bar bar{.name = exchange.name, .label = absl::StrFormat("%.1f ms", ms)};
        if (const auto cost = results.CostOf(*run)) {
          bar.marks = {{cost->overlapped_seconds * 1e3, "bound"}, {cost->seconds * 1e3, "end"}};
          absl::StrAppendFormat(&bar.label, ", alpha-beta %.1f, %.1f", cost->seconds * 1e3,
                                cost->overlapped_seconds * 1e3);
        }
        bar.parts = {{ms, ColorOf(exchange), absl::StrCat(bar.name, ": ", bar.label)}};
        bars.push_back(std::move(bar));
      }
      svg += BarGroupSvg(GroupTitle(results, link, size), bars, "ms a step", top);
    }
  }
  return svg.empty() ? "" : SvgPicture(top, svg);
}

std::string AlphaBetaSvg(const ExchangeResults& results) {
  std::vector<CurvePanel> panels;
  for (const std::string& link : results.link_names) {
    const std::optional<LinkCost> cost = results.CostOf(link);
    const std::vector<double> sizes = MeasuredSizes(results, link);
    if (!cost.has_value() || sizes.empty()) continue;
    panels.push_back(SizePanel(results, link, sizes, *cost));
    panels.push_back(WorkersPanel(results, link, sizes.back(), *cost));
  }
  return CurvePanelsSvg(panels);
}

std::string HostBytesSvg(const ExchangeResults& results) {
  std::string svg;
  double top = 0;
  for (const std::string& link : results.link_names) {
    std::vector<std::pair<const ExchangeRun*, ExchangeCost>> runs;
    double most = 0;
    for (const ExchangeCase& exchange : results.cases) {
      const ExchangeRun* run = results.Find(exchange, link, LargestSize(results));
      if (run == nullptr || run->hosts.empty()) continue;
      const std::optional<ExchangeCost> cost = results.CostOf(*run);
      if (!cost.has_value()) continue;
      for (size_t host = 0; host < run->hosts.size(); ++host) {
        most = std::max(most, run->HostSentBytes(host).value_or(0));
      }
      most = std::max({most, cost->worker.sends, cost->server.sends});
      runs.emplace_back(run, *cost);
    }
    if (!(most > 0)) continue;
    const double scale = (kPictureWidth - kLeft - kRight) / most;
    svg += SvgText(0, top + 16, "start", "name", GroupTitle(results, link, LargestSize(results)));
    top += kGroupTitle;
    const double first = top;
    std::string drawn;
    for (const auto& [run, cost] : runs) {
      const double height = static_cast<double>(run->hosts.size()) * (kHostBar + kHostGap);
      drawn += SvgText(kLeft - 8, top + height / 2 + 4, "end", "", run->exchange.name);
      drawn += HostBars(*run, cost, scale, top);
      top += height + kCaseGap;
    }
    for (const double tick : NiceTicks(0, most * kMb, 8)) {
      const double x = kLeft + tick / kMb * scale;
      svg += SvgLine(x, first - 2, x, top, "grid");
      svg += SvgText(x, top + 14, "middle", "small", absl::StrFormat("%g", tick + 0.0));  // no -0
    }
    svg += SvgText(kPictureWidth - kRight + 24, top + 14, "start", "small", "MB sent in a step");
    svg += drawn;
    top += kAxis;
    break;  // bytes do not depend on the link
  }
  return svg.empty() ? "" : SvgPicture(top, svg);
}

std::string MemorySvg(const ExchangeResults& results) {
  std::vector<Bar> workers, servers;
  for (const ExchangeCase& exchange : results.cases) {
    const ExchangeRun* run = MemoryRun(results, exchange);
    if (run == nullptr) continue;
    workers.push_back(MemoryBar(exchange.name, *run->WorkerHeld()));
    if (const auto held = run->ServerHeld()) servers.push_back(MemoryBar(exchange.name, *held));
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
