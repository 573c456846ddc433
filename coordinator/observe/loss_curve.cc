// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"

namespace tug {
namespace {

constexpr double kWidth = 860, kHeight = 480;
constexpr double kLeft = 64, kRight = 24, kTop = 48, kBottom = 52;
constexpr const char* kTrainingColor = "#2f6db5";
constexpr const char* kValidationColor = "#d1495b";
constexpr const char* kInk = "#333";
constexpr const char* kGrid = "#e6e6e6";

struct Axes {
  double step_low = 0, step_high = 1;
  double loss_low = 0, loss_high = 1;

  double X(double step) const {
    return kLeft + (step - step_low) / (step_high - step_low) * (kWidth - kLeft - kRight);
  }
  double Y(double loss) const {
    return kHeight - kBottom -
           (loss - loss_low) / (loss_high - loss_low) * (kHeight - kTop - kBottom);
  }
};

std::vector<LossPoint> Finite(const std::vector<LossPoint>& points) {
  std::vector<LossPoint> finite;
  for (const LossPoint& point : points) {
    if (std::isfinite(point.loss)) finite.push_back(point);
  }
  return finite;
}

// Averages groups of neighbours, so that at most `most` points remain.
std::vector<LossPoint> Thinned(const std::vector<LossPoint>& points, size_t most) {
  const size_t group = (points.size() + most - 1) / most;
  if (group <= 1) return points;
  std::vector<LossPoint> thinned;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(begin + group, points.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += points[i].loss;
    thinned.push_back({points[(begin + end - 1) / 2].step, sum / static_cast<double>(end - begin)});
  }
  return thinned;
}

// Minimum and maximum of groups of neighbours: the spread of a long, noisy series in at most 2 x
// `most` points.
std::vector<LossPoint> Envelope(const std::vector<LossPoint>& points, size_t most) {
  const size_t group = (points.size() + most - 1) / most;
  if (group <= 2) return points;
  std::vector<LossPoint> envelope;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const auto first = points.begin() + begin;
    const auto last = points.begin() + std::min(begin + group, points.size());
    auto [least, greatest] = std::minmax_element(
        first, last, [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; });
    if (greatest < least) std::swap(least, greatest);
    envelope.push_back(*least);
    if (greatest != least) envelope.push_back(*greatest);
  }
  return envelope;
}

// Centred moving average. The window shrinks toward the beginning, which keeps the curve's steep
// start. At the end it only loses its later half, so that the last value is not that of a single
// step.
std::vector<LossPoint> Smoothed(const std::vector<LossPoint>& points) {
  const size_t reach = std::max<size_t>(1, points.size() / 80);
  std::vector<LossPoint> smooth = points;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t first = i - std::min(reach, i);
    const size_t last = std::min(i + std::min(reach, i), points.size() - 1);
    double sum = 0;
    for (size_t j = first; j <= last; ++j) sum += points[j].loss;
    smooth[i].loss = sum / static_cast<double>(last - first + 1);
  }
  return smooth;
}

Axes Fit(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation) {
  Axes axes;
  double low = INFINITY, high = -INFINITY, last = 1;
  for (const auto* series : {&training, &validation}) {
    for (const LossPoint& point : *series) {
      low = std::min(low, point.loss);
      high = std::max(high, point.loss);
      last = std::max(last, static_cast<double>(point.step));
    }
  }
  axes.step_high = last;
  if (low > high) return axes;
  const double margin = std::max((high - low) * 0.05, 1e-3 * std::max(1.0, std::abs(high)));
  axes.loss_low = low - margin;
  axes.loss_high = high + margin;
  return axes;
}

std::string Label(double value) {
  if (std::abs(value) < 1e-9) return "0";
  if (std::abs(value) >= 1e6) return absl::StrFormat("%gM", value / 1e6);
  if (std::abs(value) < 1000) return absl::StrFormat("%g", value);
  return absl::StrFormat("%d,%03d", static_cast<int64_t>(value) / 1000,
                         static_cast<int64_t>(value) % 1000);
}

std::string Text(double x, double y, const std::string& anchor, const std::string& text,
                 const std::string& more = "") {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x, y,
                         anchor, more, text);
}

std::string Line(double x1, double y1, double x2, double y2, const char* color, double width) {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"/>\n",
      x1, y1, x2, y2, color, width);
}

std::string Grid(const Axes& axes) {
  std::string svg;
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  for (const double loss : NiceTicks(axes.loss_low, axes.loss_high, 7)) {
    svg += Line(kLeft, axes.Y(loss), right, axes.Y(loss), kGrid, 1);
    svg += Text(kLeft - 8, axes.Y(loss) + 4, "end", Label(loss));
  }
  for (const double step : NiceTicks(axes.step_low, axes.step_high, 8)) {
    svg += Line(axes.X(step), bottom, axes.X(step), bottom + 5, kInk, 1);
    svg += Text(axes.X(step), bottom + 20, "middle", Label(step));
  }
  svg += Line(kLeft, bottom, right, bottom, kInk, 1);
  svg += Text((kLeft + right) / 2, kHeight - 10, "middle", "step");
  svg += Text(0, 0, "middle", "loss (nats per token)",
              absl::StrFormat("transform=\"translate(18,%.1f) rotate(-90)\"", (kTop + bottom) / 2));
  return svg;
}

std::string Polyline(const Axes& axes, const std::vector<LossPoint>& points, const char* color,
                     double width, double opacity) {
  std::string path;
  for (const LossPoint& point : points) {
    absl::StrAppendFormat(&path, "%.1f,%.1f ", axes.X(static_cast<double>(point.step)),
                          axes.Y(point.loss));
  }
  return absl::StrFormat(
      "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-opacity=\"%g\" "
      "stroke-linejoin=\"round\" points=\"%s\"/>\n",
      color, width, opacity, path);
}

std::string Dots(const Axes& axes, const std::vector<LossPoint>& points) {
  std::string svg;
  for (const LossPoint& point : points) {
    absl::StrAppendFormat(
        &svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" stroke=\"white\"/>\n",
        axes.X(static_cast<double>(point.step)), axes.Y(point.loss), kValidationColor);
  }
  return svg;
}

std::string Legend(bool training, const std::vector<LossPoint>& validation) {
  std::string svg;
  const double x = kWidth - kRight - 200;
  double y = kTop + 18;
  if (training) {
    svg += Line(x, y - 4, x + 26, y - 4, kTrainingColor, 2);
    svg += Text(x + 34, y, "start", "training, moving average");
    y += 20;
  }
  if (!validation.empty()) {
    absl::StrAppendFormat(&svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x + 13,
                          y - 4, kValidationColor);
    svg +=
        Text(x + 34, y, "start", absl::StrFormat("validation, last %.3f", validation.back().loss));
  }
  return svg;
}

}  // namespace

std::vector<double> NiceTicks(double low, double high, int wanted) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) return {};
  if (low == high) return {low};
  const double rough = (high - low) / std::max(1, wanted);
  const double magnitude = std::pow(10.0, std::floor(std::log10(rough)));
  double distance = 10 * magnitude;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * magnitude >= rough) {
      distance = factor * magnitude;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / distance - 1e-9);
  for (double i = first; i * distance <= high + 1e-9 * distance; ++i) ticks.push_back(i * distance);
  return ticks;
}

std::string LossCurveSvg(const LossCurve& curve) {
  const std::vector<LossPoint> all_training = Finite(curve.training);
  const auto columns = static_cast<size_t>(kWidth - kLeft - kRight);
  const std::vector<LossPoint> training = Envelope(all_training, columns);
  const std::vector<LossPoint> validation = Finite(curve.validation);
  const Axes axes = Fit(training, validation);

  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight, kWidth, kHeight, kInk);
  svg += Text(kLeft, 28, "start", XmlEscaped(curve.title), "font-size=\"16\" font-weight=\"bold\"");
  svg += Grid(axes);
  if (!training.empty()) {
    svg += Polyline(axes, training, kTrainingColor, 1, 0.3);
    svg += Polyline(axes, Smoothed(Thinned(all_training, columns)), kTrainingColor, 2, 1);
  }
  if (validation.size() > 1) svg += Polyline(axes, validation, kValidationColor, 1, 0.5);
  svg += Dots(axes, validation);
  svg += Legend(!training.empty(), validation);
  if (training.empty() && validation.empty()) {
    svg += Text(kWidth / 2, kHeight / 2, "middle", "no step was completed");
  }
  return svg + "</svg>\n";
}

}  // namespace tug
