// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/sections/sync_charts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/charts/chart.h"
#include "lab/experiment/charts/report_page.h"
#include "lab/experiment/measures/measure.h"

namespace tug {
namespace {

constexpr double kHistogram = 70;  // height
constexpr size_t kMaxWorkers = 32;
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

// A grid with a column per straggler of the part. `charts`: in its order.
std::string Columns(const SyncPart& part, const std::vector<Chart>& charts) {
  return ChartsSvg(charts,
                   {.columns = part.Stragglers().size(), .left = 110, .right = 20, .between = 20});
}

const RunFigures* FiguresOf(const SyncCase* one) {
  return one == nullptr ? nullptr : one->figures();
}

std::string StragglersTitle(const std::string& straggler) {
  return absl::StrCat("stragglers: ", straggler);
}

// Shares of a worker's time, in a row from 0 to 1.
void AddWorker(const WorkerTimes& times, const ChartRange& row, Chart& chart) {
  if (times.seconds <= 0) return;
  const auto add = [&](double begin, double seconds, const char* color, const char* what) {
    chart.boxes.push_back(
        {{begin / times.seconds, (begin + seconds) / times.seconds},
         row,
         color,
         absl::StrFormat("virtual worker %d: %s %.0f%% of its time", times.virtual_worker, what,
                         seconds / times.seconds * 100)});
  };
  add(0, times.compute_seconds, "var(--busy)", "computes");
  add(times.compute_seconds, times.straggle_seconds, "var(--slow)", "is slowed down for");
  add(times.seconds - times.wait_seconds, times.wait_seconds, "", "waits for weights");
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

// Staleness of updates, an empty chart of a case without figures. `color`: of the bars.
Chart Histogram(const RunFigures* figures, size_t entries, const std::string& color) {
  Chart chart{.height = kHistogram,
              .shaded = figures != nullptr,
              .x = {.range = ChartRange{0, static_cast<double>(entries)}, .wanted = 0},
              .y = {.range = ChartRange{0, 1}, .wanted = 0}};
  if (figures == nullptr) return chart;
  const std::vector<double> shares = StalenessShares(*figures, entries);
  const double most = std::max(1e-9, *std::max_element(shares.begin(), shares.end()));
  for (size_t i = 0; i < entries; ++i) {
    const auto at = static_cast<double>(i);
    const std::string more = i == kMaxStaleness ? " or more" : "";
    chart.boxes.push_back(
        {{at + 0.05, at + 0.95},
         {0, 0.9 * shares[i] / most},
         color,
         absl::StrFormat("staleness %d%s: %.1f%% of updates", i, more, shares[i] * 100)});
    if (i % (entries > 16 ? 5 : 1) == 0) chart.x.ticks.push_back({at + 0.5, absl::StrCat(i)});
  }
  chart.texts.push_back(
      {{kAxisEnd, kAxisEnd},
       absl::StrFormat("mean %.1f, max %d", MeanStaleness(*figures), MostStaleness(*figures)),
       -6,
       14,
       "end"});
  return chart;
}

// `mode`: index among the part's modes.
Bar SpeedBar(const SyncPart& part, const SyncCase& one, size_t mode) {
  const RepeatSpread& speed = *one.batches;
  Bar bar{.name = one.mode,
          .parts = {{speed.median, SeriesColor(mode), one.mode}},
          .label = SpeedLabel(one)};
  if (speed.count > 1) bar.spread = {speed.low, speed.high};
  const SyncCase* undisturbed = part.Undisturbed(one.mode);
  if (one.bound.has_value() && undisturbed != nullptr && undisturbed->batches.has_value()) {
    bar.marks = {{*one.bound * undisturbed->batches->median, "bound"}};
  }
  return bar;
}

}  // namespace

std::string SpeedBarsSvg(const SyncPart& part) {
  const std::vector<std::string> modes = part.Modes();
  std::vector<Chart> charts;
  for (const std::string& straggler : part.Stragglers()) {
    Chart chart = RowsChart(StragglersTitle(straggler), MeasureHeading("batch_rate"));
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const SyncCase* one = part.Find(modes[mode], straggler);
      if (one != nullptr && one->batches.has_value()) AddBar(chart, SpeedBar(part, *one, mode));
    }
    charts.push_back(std::move(chart));
  }
  return ChartsSvg(charts, {.left = 110, .right = 300, .same_x = true});
}

std::string WaitBarsSvg(const SyncPart& part) {
  size_t workers = 0;
  for (const SyncCase& one : part.cases) {
    if (one.figures() != nullptr) workers = std::max(workers, one.figures()->workers.size());
  }
  if (workers == 0) return "";
  workers = std::min(workers, kMaxWorkers);
  std::vector<Chart> charts;
  for (const std::string& straggler : part.Stragglers()) {
    Chart chart = RowsChart(StragglersTitle(straggler), "");
    chart.x = {.name = "part of the time in steps (%)",
               .range = ChartRange{0, 1},
               .ticks = {{0, "0"}, {0.5, "50"}, {1, "100"}}};
    for (const std::string& mode : part.Modes()) {
      const RunFigures* figures = FiguresOf(part.Find(mode, straggler));
      for (size_t i = 0; i < workers; ++i) {
        const bool drawn = figures != nullptr && i < figures->workers.size();
        const ChartRange row =
            AddRow(chart, i == 0 && charts.empty() ? mode : "",
                   {.height = 8, .gap = i + 1 < workers ? 2.0 : 16.0, .shaded = drawn});
        if (drawn) AddWorker(figures->workers[i], row, chart);
      }
    }
    charts.push_back(std::move(chart));
  }
  return Columns(part, charts);
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
  std::vector<Chart> charts;
  for (const std::string& mode : modes) {
    const auto number = static_cast<size_t>(std::find(all.begin(), all.end(), mode) - all.begin());
    for (const std::string& straggler : part.Stragglers()) {
      Chart chart = Histogram(FiguresOf(part.Find(mode, straggler)), entries, SeriesColor(number));
      const size_t column = charts.size() % part.Stragglers().size();
      if (column == 0) chart.y.ticks = {{0.9, mode, ""}};
      if (charts.size() == column) chart.title = StragglersTitle(straggler);
      if (&mode == &modes.back()) {
        chart.x.name = "staleness (updates)";
        chart.y.name = column == 0 ? "part of all updates" : "";
      }
      charts.push_back(std::move(chart));
    }
  }
  return Columns(part, charts);
}

}  // namespace tug
