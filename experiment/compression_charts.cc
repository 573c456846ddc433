#include "experiment/compression_charts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiment/bar_group.h"
#include "experiment/loss_panels.h"
#include "experiment/report_page.h"
#include "experiment/svg.h"

namespace tug {
namespace {

constexpr size_t kPanelsInRow = 3;

// Of each codec, where it ran at all: bytes of a step do not depend on the link.
std::vector<const LinkRun*> OneRunOfEach(const CompressionResults& results) {
  std::vector<const LinkRun*> runs;
  for (const CodecCase& codec : results.codecs) {
    const auto run =
        std::find_if(results.links.begin(), results.links.end(),
                     [&](const LinkRun& candidate) { return candidate.codec == codec; });
    runs.push_back(run == results.links.end() ? nullptr : &*run);
  }
  return runs;
}

using Abscissa = std::function<double(uint64_t step, double seconds)>;

// One for each codec whose training counts, with `x_of` what it is drawn against; none where that
// is null.
LossPanel Panel(const CompressionResults& results, const std::string& x_name,
                const std::function<Abscissa(const LearningRun& run)>& x_of) {
  LossPanel panel{x_name, {}};
  for (size_t i = 0; i < results.codecs.size(); ++i) {
    const LearningRun* run = results.Best(results.codecs[i]);
    if (run == nullptr) continue;
    Abscissa x = x_of(*run);
    if (x == nullptr) continue;
    panel.series.push_back({results.codecs[i].name, SeriesColor(i), &run->figures, std::move(x)});
  }
  return panel;
}

// MB that all workers have pushed and pulled by the end of a step.
Abscissa MegabytesBy(const LearningRun& run) {
  std::vector<std::pair<uint64_t, double>> sums = {{0, 0.0}};  // in order of steps
  for (const StepPoint& point : run.figures.steps) {
    const auto bytes = static_cast<double>(point.pushed_bytes + point.pulled_bytes);
    sums.emplace_back(point.step, sums.back().second + bytes * 1e-6);
  }
  return [sums = std::move(sums)](uint64_t step, double) {
    const auto after =
        std::upper_bound(sums.begin(), sums.end(), step,
                         [](uint64_t wanted, const auto& sum) { return wanted < sum.first; });
    return (after - 1)->second;
  };
}

// Steps before the codec's own are as long as FP32's.
Abscissa SecondsOnLink(const CompressionResults& results, const LearningRun& learning,
                       const std::string& link) {
  const LinkRun* run = results.Find(learning.codec, link);
  const LinkRun* fp32 = results.FindFp32(link);
  if (run == nullptr || !(run->StepSeconds() > 0)) return nullptr;
  const double seconds = run->StepSeconds();
  const double whole_seconds = fp32 == nullptr ? seconds : fp32->StepSeconds();
  return [=, whole_steps = learning.whole_steps](uint64_t step, double) {
    const uint64_t whole = std::min(step, whole_steps);
    return static_cast<double>(whole) * whole_seconds + static_cast<double>(step - whole) * seconds;
  };
}

}  // namespace

std::string StepTimesSvg(const CompressionResults& results) {
  std::string svg;
  double top = 0;
  for (const std::string& link : results.link_names) {
    std::vector<Bar> bars;
    for (size_t i = 0; i < results.codecs.size(); ++i) {
      const LinkRun* run = results.Find(results.codecs[i], link);
      if (run == nullptr || !(run->StepSeconds() > 0)) continue;
      const double ms = run->StepSeconds() * 1e3;
      Bar bar{.name = run->codec.name, .label = absl::StrFormat("%.1f ms", ms)};
      if (const auto verdict = results.VerdictOf(*run)) {
        absl::StrAppendFormat(&bar.label, ", %.2fx fp32: %s", verdict->SpeedUp(),
                              verdict->pays() ? "pays" : "does not");
      }
      bar.parts = StepParts(ms, run->WaitSeconds() * 1e3, SeriesColor(i), bar.name, bar.label);
      bars.push_back(std::move(bar));
    }
    svg += BarGroupSvg("link: " + link, bars, "ms a step", top);
  }
  return svg.empty() ? "" : SvgPicture(top, svg);
}

std::string StepBytesSvg(const CompressionResults& results) {
  const std::vector<const LinkRun*> runs = OneRunOfEach(results);
  const auto group = [&](const std::string& title, double (LinkRun::*bytes_of)() const,
                         double& top) {
    const LinkRun* fp32 = nullptr;
    for (const LinkRun* run : runs) {
      if (run != nullptr && run->codec.is_fp32()) fp32 = run;
    }
    std::vector<Bar> bars;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i] == nullptr) continue;
      const double kilobytes = (runs[i]->*bytes_of)() * 1e-3;
      Bar bar{.name = runs[i]->codec.name, .label = absl::StrFormat("%.1f kB", kilobytes)};
      if (fp32 != nullptr && runs[i] != fp32 && (fp32->*bytes_of)() > 0) {
        absl::StrAppendFormat(&bar.label, ", %.2f%% of fp32",
                              kilobytes * 1e5 / (fp32->*bytes_of)());
      }
      bar.parts = {{kilobytes, SeriesColor(i), absl::StrCat(bar.name, ": ", bar.label)}};
      bars.push_back(std::move(bar));
    }
    return BarGroupSvg(title, bars, "kB a step", top);
  };
  double top = 0;
  std::string svg = group("pushed", &LinkRun::PushedBytes, top);
  svg += group("pulled", &LinkRun::PulledBytes, top);
  return svg.empty() ? "" : SvgPicture(top, svg);
}

std::string LearningLossesSvg(const CompressionResults& results) {
  const auto steps = [](const LearningRun&) -> Abscissa {
    return [](uint64_t step, double) { return static_cast<double>(step); };
  };
  const auto bytes = [](const LearningRun& run) { return MegabytesBy(run); };
  const auto seconds = [](const LearningRun&) -> Abscissa {
    return [](uint64_t, double at) { return at; };
  };
  std::vector<LossRow> rows = {
      {"as it was measured",
       {Panel(results, "steps", steps), Panel(results, "MB pushed and pulled", bytes),
        Panel(results, "seconds, without a link", seconds)}}};
  size_t drawn = 0;
  for (const std::string& link : results.link_names) {
    LossPanel panel =
        Panel(results, absl::StrCat("seconds, link ", link),
              [&](const LearningRun& run) { return SecondsOnLink(results, run, link); });
    if (panel.series.empty()) continue;
    if (drawn++ % kPanelsInRow == 0) rows.push_back({"steps by how long one takes on a link", {}});
    rows.back().panels.push_back(std::move(panel));
  }
  return LossPanelsSvg(rows);
}

}  // namespace tug
