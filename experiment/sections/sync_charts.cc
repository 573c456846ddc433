// SPDX-License-Identifier: Apache-2.0
#include "experiment/sections/sync_charts.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/report_page.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kLeft = 110, kRight = 300;
constexpr double kBar = 17, kBarGap = 4, kGroupTitle = 24, kGroupGap = 10, kAxis = 36, kCap = 4;

// Layout of the grids: modes down, stragglers across.
constexpr double kGridGap = 20, kGridTitle = 26;
constexpr double kWorkerBar = 8, kWorkerGap = 2, kModeGap = 14;
constexpr size_t kMaxWorkers = 32;
constexpr double kHistogram = 70, kHistogramAxis = 22;
constexpr size_t kMaxStaleness = 40;  // larger ones are in the last bar

std::string SpeedLabel(const SyncCase& one) {
  std::string label = absl::StrFormat("%.2f", one.batches->median);
  if (one.of_bsp.has_value() && one.of_bsp->median != 1) {
    absl::StrAppendFormat(&label, ", %.2f of undisturbed bsp", one.of_bsp->median);
  }
  if (one.bound.has_value() && one.of_itself.has_value()) {
    absl::StrAppendFormat(&label, ", %.0f%% of bound", one.of_itself->median / *one.bound * 100);
  }
  return label;
}

double GridLeft(size_t column, size_t columns) {
  const double width = (kPictureWidth - kLeft - kGridGap * static_cast<double>(columns)) /
                       static_cast<double>(columns);
  return kLeft + static_cast<double>(column) * (width + kGridGap);
}
double GridWidth(size_t columns) { return GridLeft(1, columns) - GridLeft(0, columns) - kGridGap; }

// A grid with a row per mode and a column per straggler of the part. `height`: of a cell; `draw`:
// draws a cell.
std::string Grid(const SyncPart& part, const std::vector<std::string>& modes, double height,
                 const std::function<std::string(const SyncCase&, double left, double top,
                                                 double width)>& draw) {
  const std::vector<std::string> stragglers = part.Stragglers();
  std::string svg;
  for (size_t column = 0; column < stragglers.size(); ++column) {
    svg += SvgText(GridLeft(column, stragglers.size()), 14, "start", "name",
                   absl::StrCat("stragglers: ", stragglers[column]));
  }
  double top = kGridTitle;
  for (const std::string& mode : modes) {
    svg += SvgText(kLeft - 10, top + 12, "end", "", mode);
    for (size_t column = 0; column < stragglers.size(); ++column) {
      const SyncCase* one = part.Find(mode, stragglers[column]);
      if (one == nullptr || one->figures() == nullptr) continue;
      svg += draw(*one, GridLeft(column, stragglers.size()), top, GridWidth(stragglers.size()));
    }
    top += height + kModeGap;
  }
  return SvgPicture(top, svg);
}

std::string WorkerBar(const WorkerTimes& times, double left, double top, double width) {
  std::string svg = SvgRect(left, top, width, kWorkerBar, "row");
  if (times.seconds <= 0) return svg;
  const double scale = width / times.seconds;
  const std::string who = absl::StrCat("virtual worker ", times.virtual_worker, ": ");
  const auto part = [&](const char* what, double seconds) {
    return absl::StrFormat("%s%s %.0f%% of its time", who, what, seconds / times.seconds * 100);
  };
  double x = left;
  svg += SvgBar(x, top, times.compute_seconds * scale, kWorkerBar, "var(--busy)",
                part("computes", times.compute_seconds));
  x += times.compute_seconds * scale;
  svg += SvgBar(x, top, times.straggle_seconds * scale, kWorkerBar, "var(--slow)",
                part("is slowed down for", times.straggle_seconds));
  const double waits = times.wait_seconds * scale;
  return svg + SvgWaitBar(left + width - waits, top, waits, kWorkerBar,
                          part("waits for weights", times.wait_seconds));
}

// Shares of updates by staleness; the last entry has all larger ones.
std::vector<double> StalenessShares(const RunFigures& figures, size_t entries) {
  std::vector<double> shares(entries, 0.0);
  const double all = static_cast<double>(
      std::accumulate(figures.staleness.begin(), figures.staleness.end(), uint64_t{0}));
  for (size_t i = 0; i < figures.staleness.size() && all > 0; ++i) {
    shares[std::min(i, entries - 1)] += static_cast<double>(figures.staleness[i]) / all;
  }
  return shares;
}

// Histogram of staleness; `color`: of its bars.
std::string Histogram(const RunFigures& figures, size_t entries, const std::string& color,
                      double left, double top, double width) {
  const std::vector<double> shares = StalenessShares(figures, entries);
  const double most = std::max(1e-9, *std::max_element(shares.begin(), shares.end()));
  const double step = width / static_cast<double>(entries);
  std::string svg = SvgRect(left, top, width, kHistogram, "row");
  for (size_t i = 0; i < entries; ++i) {
    const double x = left + static_cast<double>(i) * step;
    const double height = shares[i] / most * (kHistogram - 6);
    const std::string more = i == kMaxStaleness ? " or more" : "";
    svg += SvgBar(x + 1, top + kHistogram - height, step - 2, height, color,
                  absl::StrFormat("staleness %d%s: %.1f%% of updates", i, more, shares[i] * 100));
    if (i % (entries > 16 ? 5 : 1) != 0) continue;
    svg += SvgText(x + step / 2, top + kHistogram + 14, "middle", "small", absl::StrCat(i));
  }
  return svg + SvgText(left + width - 6, top + 14, "end", "small",
                       absl::StrFormat("mean %.1f, max %d", MeanStaleness(figures),
                                       MostStaleness(figures)));
}

// Line from low to high, across the end of a bar.
std::string RangeMark(const RepeatSpread& spread, double scale, double top) {
  if (spread.count < 2) return "";
  const double low = kLeft + spread.low * scale, high = kLeft + spread.high * scale;
  const double middle = top + kBar / 2;
  return SvgLine(low, middle, high, middle, "range") +
         SvgLine(low, middle - kCap, low, middle + kCap, "range") +
         SvgLine(high, middle - kCap, high, middle + kCap, "range");
}

// Bar of one case, with its bound. `mode`: index among the part's modes.
std::string SpeedBar(const SyncPart& part, const SyncCase& one, size_t mode, double scale,
                     double top) {
  std::string svg = SvgText(kLeft - 8, top + kBar - 4, "end", "", one.mode);
  svg += SvgBar(kLeft, top, one.batches->median * scale, kBar, SeriesColor(mode), one.mode);
  svg += RangeMark(*one.batches, scale, top);
  double end = one.batches->high * scale;
  const SyncCase* undisturbed = part.Undisturbed(one.mode);
  if (one.bound.has_value() && undisturbed != nullptr && undisturbed->batches.has_value()) {
    const double at = *one.bound * undisturbed->batches->median * scale;
    svg += SvgLine(kLeft + at, top - 2, kLeft + at, top + kBar + 2, "bound");
    end = std::max(end, at);
  }
  return svg + SvgText(kLeft + end + 8, top + kBar - 4, "start", "small", SpeedLabel(one));
}

}  // namespace

std::string SpeedBarsSvg(const SyncPart& part) {
  const std::vector<std::string> modes = part.Modes();
  double most = 0;
  for (const SyncCase& one : part.cases) {
    if (one.batches.has_value()) most = std::max(most, one.batches->high);
  }
  if (most <= 0) return "";
  const double scale = (kPictureWidth - kLeft - kRight) / most;
  std::string svg;
  double top = 0;
  for (const std::string& straggler : part.Stragglers()) {
    svg += SvgText(0, top + 16, "start", "name", absl::StrCat("stragglers: ", straggler));
    top += kGroupTitle;
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const SyncCase* one = part.Find(modes[mode], straggler);
      if (one == nullptr || !one->batches.has_value()) continue;
      svg += SpeedBar(part, *one, mode, scale, top);
      top += kBar + kBarGap;
    }
    top += kGroupGap;
  }
  std::string axis;
  for (const double tick : NiceTicks(0, most, 8)) {
    const double x = kLeft + tick * scale;
    axis += SvgLine(x, 0, x, top, "grid");
    axis += SvgText(x, top + 16, "middle", "small", absl::StrFormat("%g", tick + 0.0));  // no -0
  }
  axis += SvgText(kLeft + most * scale, top + 32, "end", "small", "batches per second");
  return SvgPicture(top + kAxis, axis + svg);
}

std::string WaitBarsSvg(const SyncPart& part) {
  size_t workers = 0;
  for (const SyncCase& one : part.cases) {
    if (one.figures() != nullptr) workers = std::max(workers, one.figures()->workers.size());
  }
  workers = std::min(workers, kMaxWorkers);
  if (workers == 0) return "";
  const auto draw = [&](const SyncCase& one, double left, double top, double width) {
    std::string svg;
    const std::vector<WorkerTimes>& times = one.figures()->workers;
    for (size_t i = 0; i < times.size() && i < workers; ++i) {
      svg += WorkerBar(times[i], left, top + static_cast<double>(i) * (kWorkerBar + kWorkerGap),
                       width);
    }
    return svg;
  };
  return Grid(part, part.Modes(), static_cast<double>(workers) * (kWorkerBar + kWorkerGap), draw);
}

std::string StalenessSvg(const SyncPart& part) {
  const std::vector<std::string> all = part.Modes();
  std::vector<std::string> modes;
  size_t entries = 0;
  for (const SyncCase& one : part.cases) {
    if (!one.staleness.has_value() || one.figures() == nullptr) continue;
    if (std::find(modes.begin(), modes.end(), one.mode) == modes.end()) modes.push_back(one.mode);
    entries = std::max<size_t>(entries, MostStaleness(*one.figures()) + 1);
  }
  if (modes.empty()) return "";
  entries = std::clamp<size_t>(entries, 8, kMaxStaleness + 1);
  const auto draw = [&](const SyncCase& one, double left, double top, double width) {
    const auto mode =
        static_cast<size_t>(std::find(all.begin(), all.end(), one.mode) - all.begin());
    return Histogram(*one.figures(), entries, SeriesColor(mode), left, top, width);
  };
  return Grid(part, modes, kHistogram + kHistogramAxis, draw);
}

}  // namespace tug
