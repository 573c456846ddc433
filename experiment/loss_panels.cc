#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "coordinator/loss_curve.h"
#include "experiment/svg.h"
#include "experiment/sync_charts.h"

namespace tug {
namespace {

constexpr double kLeft = 46, kGap = 44, kRight = 10;
constexpr double kPanelHeight = 190, kRowTitle = 30, kAxis = 40;
constexpr double kPanelWidth = (kPictureWidth - kLeft - kRight - 2 * kGap) / 3;
constexpr size_t kMostPoints = 160;  // of a line
constexpr size_t kWindows = 40;      // of the moving mean in a run

struct Point {
  double x = 0, y = 0;
};

// What a panel's losses are drawn against.
struct Abscissa {
  const char* name;
  std::function<double(const SyncPart&, const SyncRun&, uint64_t step, double seconds)> of;
};

const Abscissa kAbscissas[] = {
    {"steps of the job", [](const SyncPart&, const SyncRun&, uint64_t step,
                            double) { return static_cast<double>(step); }},
    {"samples in updates", [](const SyncPart& part, const SyncRun& run, uint64_t step,
                              double) { return part.SamplesAt(run, step); }},
    {"seconds", [](const SyncPart&, const SyncRun&, uint64_t, double seconds) { return seconds; }},
};

std::vector<Point> TrainingLine(const SyncPart& part, const SyncRun& run, const Abscissa& x) {
  const std::vector<StepPoint>& steps = run.figures.steps;
  const size_t window = std::max<size_t>(1, steps.size() / kWindows);
  const size_t stride = std::max<size_t>(1, steps.size() / kMostPoints);
  std::vector<Point> line;
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].loss;
    if (i >= window) sum -= steps[i - window].loss;
    if (!std::isfinite(sum)) break;  // it has diverged: nothing can be drawn from here on
    if (i % stride != 0 && i + 1 != steps.size()) continue;
    line.push_back({x.of(part, run, steps[i].step, steps[i].seconds),
                    sum / static_cast<double>(std::min(i + 1, window))});
  }
  return line;
}

std::vector<Point> Evaluations(const SyncPart& part, const SyncRun& run, const Abscissa& x) {
  std::vector<Point> dots;
  for (const EvalPoint& point : run.figures.evals) {
    if (std::isfinite(point.loss)) {
      dots.push_back({x.of(part, run, point.step, point.seconds), point.loss});
    }
  }
  return dots;
}

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

class Panel {
 public:
  Panel(double left, double top, double most_x, const Bounds& losses)
      : left_(left), top_(top), most_x_(most_x > 0 ? most_x : 1), losses_(losses) {}

  double X(double x) const { return left_ + x / most_x_ * kPanelWidth; }
  double Y(double loss) const {
    const double part = (loss - losses_.low) / (losses_.high - losses_.low);
    return top_ + kPanelHeight * (1 - std::clamp(part, 0.0, 1.0));
  }

  std::string Axes(const char* name) const {
    std::string svg = SvgRect(left_, top_, kPanelWidth, kPanelHeight, "row");
    for (const double tick : NiceTicks(losses_.low, losses_.high, 5)) {
      svg += SvgLine(left_, Y(tick), left_ + kPanelWidth, Y(tick), "grid");
      svg += SvgText(left_ - 6, Y(tick) + 4, "end", "small", absl::StrFormat("%g", tick + 0.0));
    }
    const double bottom = top_ + kPanelHeight;
    for (const double tick : NiceTicks(0, most_x_, 5)) {
      svg += SvgLine(X(tick), bottom, X(tick), bottom + 4, "grid");
      svg += SvgText(X(tick), bottom + 17, "middle", "small", absl::StrFormat("%g", tick + 0.0));
    }
    return svg + SvgText(left_ + kPanelWidth, bottom + 32, "end", "small", name);
  }

  std::string Line(const std::vector<Point>& points, const std::string& color,
                   const std::string& title) const {
    if (points.empty()) return "";
    std::string path;
    for (const Point& p : points) {
      absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "M" : " L", X(p.x), Y(p.y));
    }
    return absl::StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", color,
                        "\" stroke-width=\"1.7\" stroke-linejoin=\"round\"><title>",
                        XmlEscaped(title), "</title></path>\n");
  }

  std::string Dots(const std::vector<Point>& points, const std::string& color,
                   const std::string& title) const {
    std::string svg;
    for (const Point& p : points) {
      absl::StrAppendFormat(&svg,
                            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\" "
                            "class=\"dot\"><title>%s: %.4f</title></circle>\n",
                            X(p.x), Y(p.y), color, XmlEscaped(title), p.y);
    }
    return svg;
  }

 private:
  const double left_, top_, most_x_;
  const Bounds losses_;
};

struct Series {
  size_t mode = 0;
  const SyncRun* run = nullptr;
  std::vector<Point> line, dots;
};

}  // namespace

std::string LossPanelsSvg(const SyncPart& part) {
  if (part.replay) return "";
  const std::vector<SyncCase> modes = ModesOf(part);
  const std::vector<StragglerKind> stragglers = StragglersOf(part);
  const auto series_of = [&](StragglerKind straggler, const Abscissa& x) {
    std::vector<Series> series;
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const SyncRun* run = part.Find(modes[mode], straggler);
      if (run == nullptr) continue;
      series.push_back({mode, run, TrainingLine(part, *run, x), Evaluations(part, *run, x)});
    }
    return series;
  };

  Bounds losses;  // of all panels, so that they compare
  for (const StragglerKind straggler : stragglers) {
    for (const Series& series : series_of(straggler, kAbscissas[0])) {
      for (const Point& p : series.line) losses.Add(p.y);
      for (const Point& p : series.dots) losses.Add(p.y);
    }
  }
  if (!(losses.high > losses.low)) return "";
  losses.low -= (losses.high - losses.low) * 0.03;

  std::string svg;
  double top = 0;
  for (const StragglerKind straggler : stragglers) {
    svg +=
        SvgText(kLeft, top + 18, "start", "name", absl::StrCat("stragglers: ", NameOf(straggler)));
    double left = kLeft;
    for (const Abscissa& x : kAbscissas) {
      const std::vector<Series> all = series_of(straggler, x);
      double most_x = 0;
      for (const Series& series : all) {
        for (const Point& p : series.line) most_x = std::max(most_x, p.x);
        for (const Point& p : series.dots) most_x = std::max(most_x, p.x);
      }
      const Panel panel(left, top + kRowTitle, most_x * 1.02, losses);
      svg += panel.Axes(x.name);
      for (const Series& series : all) {
        svg += panel.Line(series.line, ModeColor(series.mode), series.run->mode.name);
      }
      for (const Series& series : all) {
        svg += panel.Dots(series.dots, ModeColor(series.mode), series.run->mode.name);
      }
      left += kPanelWidth + kGap;
    }
    top += kRowTitle + kPanelHeight + kAxis;
  }
  return SvgPicture(top, svg);
}

}  // namespace tug
