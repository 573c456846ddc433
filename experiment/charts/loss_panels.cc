// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/loss_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kLeft = 46, kGap = 40, kRight = 10;
constexpr double kPanelHeight = 190, kRowTitle = 30, kAxis = 40;
constexpr double kPanelWidth = (kPictureWidth - kLeft - kRight - 3 * kGap) / 4;
constexpr size_t kMaxPoints = 160;  // per line
constexpr size_t kWindows = 40;     // of the moving mean, per run

struct Point {
  double x = 0, y = 0;
};

std::vector<Point> TrainingLine(const LossSeries& series) {
  const std::vector<StepPoint>& steps = series.figures->steps;
  const size_t window = std::max<size_t>(1, steps.size() / kWindows);
  const size_t stride = std::max<size_t>(1, steps.size() / kMaxPoints);
  std::vector<Point> line;
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].loss;
    if (i >= window) sum -= steps[i - window].loss;
    if (!std::isfinite(sum)) break;  // diverged: nothing to draw from here on
    if (i % stride != 0 && i + 1 != steps.size()) continue;
    line.push_back({series.x(steps[i].step, steps[i].seconds),
                    sum / static_cast<double>(std::min(i + 1, window))});
  }
  return line;
}

std::vector<Point> Evaluations(const LossSeries& series) {
  std::vector<Point> dots;
  for (const EvalPoint& point : series.figures->evals) {
    if (std::isfinite(point.loss)) {
      dots.push_back({series.x(point.step, point.seconds), point.loss});
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

class Axes {
 public:
  Axes(double left, double top, double max_x, const Bounds& losses)
      : left_(left), top_(top), max_x_(max_x > 0 ? max_x : 1), losses_(losses) {}

  double X(double x) const { return left_ + x / max_x_ * kPanelWidth; }
  double Y(double loss) const {
    const double part = (loss - losses_.low) / (losses_.high - losses_.low);
    return top_ + kPanelHeight * (1 - std::clamp(part, 0.0, 1.0));
  }

  std::string Draw(const std::string& name) const {
    std::string svg = SvgRect(left_, top_, kPanelWidth, kPanelHeight, "row");
    for (const double tick : NiceTicks(losses_.low, losses_.high, 5)) {
      svg += SvgLine(left_, Y(tick), left_ + kPanelWidth, Y(tick), "grid");
      svg += SvgText(left_ - 6, Y(tick) + 4, "end", "small", absl::StrFormat("%g", tick + 0.0));
    }
    const double bottom = top_ + kPanelHeight;
    for (const double tick : NiceTicks(0, max_x_, 5)) {
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
  const double left_, top_, max_x_;
  const Bounds losses_;
};

std::string DrawPanel(const LossPanel& panel, double left, double top, const Bounds& losses) {
  std::vector<std::vector<Point>> lines, dots;
  double max_x = 0;
  for (const LossSeries& series : panel.series) {
    lines.push_back(TrainingLine(series));
    dots.push_back(Evaluations(series));
    for (const Point& p : lines.back()) max_x = std::max(max_x, p.x);
    for (const Point& p : dots.back()) max_x = std::max(max_x, p.x);
  }
  const Axes axes(left, top, max_x * 1.02, losses);
  std::string svg = axes.Draw(panel.x_name);
  for (size_t i = 0; i < lines.size(); ++i) {
    svg += axes.Line(lines[i], panel.series[i].color, panel.series[i].name);
  }
  for (size_t i = 0; i < dots.size(); ++i) {
    svg += axes.Dots(dots[i], panel.series[i].color, panel.series[i].name);
  }
  return svg;
}

}  // namespace

std::string LossPanelsSvg(const std::vector<LossRow>& rows) {
  Bounds losses;  // of all panels, so that they can be compared
  for (const LossRow& row : rows) {
    for (const LossPanel& panel : row.panels) {
      for (const LossSeries& series : panel.series) {
        for (const Point& p : TrainingLine(series)) losses.Add(p.y);
        for (const Point& p : Evaluations(series)) losses.Add(p.y);
      }
    }
  }
  if (!(losses.high > losses.low)) return "";
  losses.low -= (losses.high - losses.low) * 0.03;

  std::string svg;
  double top = 0;
  for (const LossRow& row : rows) {
    svg += SvgText(kLeft, top + 18, "start", "name", row.title);
    double left = kLeft;
    for (const LossPanel& panel : row.panels) {
      svg += DrawPanel(panel, left, top + kRowTitle, losses);
      left += kPanelWidth + kGap;
    }
    top += kRowTitle + kPanelHeight + kAxis;
  }
  return SvgPicture(top, svg);
}

}  // namespace tug
