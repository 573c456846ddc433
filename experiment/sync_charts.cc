#include "experiment/sync_charts.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/loss_curve.h"
#include "experiment/loss_panels.h"
#include "experiment/report_page.h"
#include "experiment/svg.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

constexpr double kLeft = 110, kRight = 300;
constexpr double kBar = 17, kBarGap = 4, kGroupTitle = 24, kGroupGap = 10, kAxis = 36;

// Of the grids: modes down, stragglers across.
constexpr double kGridGap = 20, kGridTitle = 26;
constexpr double kWorkerBar = 8, kWorkerGap = 2, kModeGap = 14;
constexpr size_t kMostWorkers = 32;
constexpr double kHistogram = 70, kHistogramAxis = 22;
constexpr size_t kMostStaleness = 40;  // that and more are drawn as one

std::string SpeedLabel(const SyncPart& part, const SyncRun& run) {
  std::string label = absl::StrFormat("%.2f", run.BatchesPerSecond());
  if (const auto of_bsp = part.OfBsp(run); of_bsp.has_value() && *of_bsp != 1) {
    absl::StrAppendFormat(&label, ", %.2f of undisturbed bsp", *of_bsp);
  }
  const auto bound = part.Bound(run), kept = part.OfItself(run);
  if (bound.has_value() && kept.has_value()) {
    absl::StrAppendFormat(&label, ", %.0f%% of bound", *kept / *bound * 100);
  }
  return label;
}

double GridLeft(size_t column, size_t columns) {
  const double width = (kPictureWidth - kLeft - kGridGap * static_cast<double>(columns)) /
                       static_cast<double>(columns);
  return kLeft + static_cast<double>(column) * (width + kGridGap);
}
double GridWidth(size_t columns) { return GridLeft(1, columns) - GridLeft(0, columns) - kGridGap; }

// Rows of `modes`, columns of the part's stragglers; `height` of a row's cells, and `draw` one.
std::string Grid(
    const SyncPart& part, const std::vector<SyncCase>& modes,
    const std::function<double(const SyncCase&)>& height,
    const std::function<std::string(const SyncRun&, double left, double top, double width)>& draw) {
  const std::vector<StragglerKind> stragglers = StragglersOf(part);
  std::string svg;
  for (size_t column = 0; column < stragglers.size(); ++column) {
    svg += SvgText(GridLeft(column, stragglers.size()), 14, "start", "name",
                   absl::StrCat("stragglers: ", NameOf(stragglers[column])));
  }
  double top = kGridTitle;
  for (const SyncCase& mode : modes) {
    svg += SvgText(kLeft - 10, top + 12, "end", "", mode.name);
    for (size_t column = 0; column < stragglers.size(); ++column) {
      const SyncRun* run = part.Find(mode, stragglers[column]);
      if (run == nullptr) continue;
      svg += draw(*run, GridLeft(column, stragglers.size()), top, GridWidth(stragglers.size()));
    }
    top += height(mode) + kModeGap;
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
                part("is made slow for", times.straggle_seconds));
  const double waits = times.wait_seconds * scale;
  return svg + SvgWaitBar(left + width - waits, top, waits, kWorkerBar,
                          part("waits for weights", times.wait_seconds));
}

// Shares of updates by staleness, the last of all that is beyond.
std::vector<double> StalenessShares(const RunFigures& figures, size_t entries) {
  std::vector<double> shares(entries, 0.0);
  const double all = static_cast<double>(
      std::accumulate(figures.staleness.begin(), figures.staleness.end(), uint64_t{0}));
  for (size_t i = 0; i < figures.staleness.size() && all > 0; ++i) {
    shares[std::min(i, entries - 1)] += static_cast<double>(figures.staleness[i]) / all;
  }
  return shares;
}

}  // namespace

std::vector<SyncCase> ModesOf(const SyncPart& part) {
  std::vector<SyncCase> modes;
  for (const SyncRun& run : part.runs) {
    if (std::find(modes.begin(), modes.end(), run.mode) == modes.end()) modes.push_back(run.mode);
  }
  return modes;
}

std::vector<StragglerKind> StragglersOf(const SyncPart& part) {
  std::vector<StragglerKind> stragglers;
  for (const SyncRun& run : part.runs) {
    if (std::find(stragglers.begin(), stragglers.end(), run.straggler) == stragglers.end()) {
      stragglers.push_back(run.straggler);
    }
  }
  return stragglers;
}

std::string LossPanelsSvg(const SyncPart& part) {
  if (part.replay) return "";
  const std::vector<SyncCase> modes = ModesOf(part);
  std::vector<LossRow> rows;
  for (const StragglerKind straggler : StragglersOf(part)) {
    LossRow row{absl::StrCat("stragglers: ", NameOf(straggler)),
                {{"steps of the job", {}}, {"samples in updates", {}}, {"seconds", {}}}};
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const SyncRun* run = part.Find(modes[mode], straggler);
      if (run == nullptr) continue;
      const auto add = [&](LossPanel& panel, std::function<double(uint64_t, double)> x) {
        panel.series.push_back({run->mode.name, SeriesColor(mode), &run->figures, std::move(x)});
      };
      add(row.panels[0], [](uint64_t step, double) { return static_cast<double>(step); });
      add(row.panels[1],
          [&part, run](uint64_t step, double) { return part.SamplesAt(*run, step); });
      add(row.panels[2], [](uint64_t, double seconds) { return seconds; });
    }
    rows.push_back(std::move(row));
  }
  return LossPanelsSvg(rows);
}

std::string SpeedBarsSvg(const SyncPart& part) {
  const std::vector<SyncCase> modes = ModesOf(part);
  double most = 0;
  for (const SyncRun& run : part.runs) most = std::max(most, run.BatchesPerSecond());
  if (most <= 0) return "";
  const double scale = (kPictureWidth - kLeft - kRight) / most;
  std::string svg;
  double top = 0;
  for (const StragglerKind straggler : StragglersOf(part)) {
    svg += SvgText(0, top + 16, "start", "name", absl::StrCat("stragglers: ", NameOf(straggler)));
    top += kGroupTitle;
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const SyncRun* run = part.Find(modes[mode], straggler);
      if (run == nullptr) continue;
      const double width = run->BatchesPerSecond() * scale;
      svg += SvgText(kLeft - 8, top + kBar - 4, "end", "", run->mode.name);
      svg += SvgBar(kLeft, top, width, kBar, SeriesColor(mode), run->mode.name);
      double end = width;
      const SyncRun* undisturbed = part.Find(run->mode, StragglerKind::kNone);
      if (const auto bound = part.Bound(*run); bound.has_value() && undisturbed != nullptr) {
        const double at = *bound * undisturbed->BatchesPerSecond() * scale;
        svg += SvgLine(kLeft + at, top - 2, kLeft + at, top + kBar + 2, "bound");
        end = std::max(end, at);
      }
      svg += SvgText(kLeft + end + 8, top + kBar - 4, "start", "small", SpeedLabel(part, *run));
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
  axis += SvgText(kLeft + most * scale, top + 32, "end", "small", "batches a second");
  return SvgPicture(top + kAxis, axis + svg);
}

std::string WaitBarsSvg(const SyncPart& part) {
  size_t workers = 0;
  for (const SyncRun& run : part.runs) workers = std::max(workers, run.figures.workers.size());
  workers = std::min(workers, kMostWorkers);
  if (workers == 0) return "";
  const auto height = [&](const SyncCase&) {
    return static_cast<double>(workers) * (kWorkerBar + kWorkerGap);
  };
  return Grid(part, ModesOf(part), height,
              [&](const SyncRun& run, double left, double top, double width) {
                std::string svg;
                for (size_t i = 0; i < run.figures.workers.size() && i < workers; ++i) {
                  svg += WorkerBar(run.figures.workers[i], left,
                                   top + static_cast<double>(i) * (kWorkerBar + kWorkerGap), width);
                }
                return svg;
              });
}

std::string StalenessSvg(const SyncPart& part) {
  const std::vector<SyncCase> all = ModesOf(part);
  std::vector<SyncCase> modes;
  size_t entries = 0;
  for (const SyncRun& run : part.runs) {
    if (!SyncModeOf(run.mode.policy).update_per_push || run.figures.staleness.empty()) continue;
    if (std::find(modes.begin(), modes.end(), run.mode) == modes.end()) modes.push_back(run.mode);
    entries = std::max<size_t>(entries, MostStaleness(run.figures) + 1);
  }
  if (modes.empty()) return "";
  entries = std::clamp<size_t>(entries, 8, kMostStaleness + 1);
  return Grid(
      part, modes, [](const SyncCase&) { return kHistogram + kHistogramAxis; },
      [&](const SyncRun& run, double left, double top, double width) {
        const size_t mode =
            static_cast<size_t>(std::find(all.begin(), all.end(), run.mode) - all.begin());
        const std::vector<double> shares = StalenessShares(run.figures, entries);
        const double most = std::max(1e-9, *std::max_element(shares.begin(), shares.end()));
        const double step = width / static_cast<double>(entries);
        std::string svg = SvgRect(left, top, width, kHistogram, "row");
        for (size_t i = 0; i < entries; ++i) {
          const double x = left + static_cast<double>(i) * step;
          const double height = shares[i] / most * (kHistogram - 6);
          const std::string more = i == kMostStaleness ? " or more" : "";
          svg += SvgBar(
              x + 1, top + kHistogram - height, step - 2, height, SeriesColor(mode),
              absl::StrFormat("staleness %d%s: %.1f%% of updates", i, more, shares[i] * 100));
          if (i % (entries > 16 ? 5 : 1) != 0) continue;
          svg += SvgText(x + step / 2, top + kHistogram + 14, "middle", "small", absl::StrCat(i));
        }
        return svg + SvgText(left + width - 6, top + 14, "end", "small",
                             absl::StrFormat("mean %.1f, most %d", MeanStaleness(run.figures),
                                             MostStaleness(run.figures)));
      });
}

}  // namespace tug
