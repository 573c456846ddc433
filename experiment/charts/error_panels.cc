// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/error_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "coordinator/observe/loss_curve.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr double kLeft = 66, kRight = 14, kGap = 20;
constexpr double kHeight = 240, kTitle = 26, kAxis = 40, kLegendLine = 20;
constexpr double kLetter = 6.6;  // of a name, approximate width
constexpr double kWidestBar = 34, kCap = 4;
constexpr double kApart = 9;  // between series at the same number, so that error bars are apart
constexpr double kMaxSingleWidth = 760;  // width of a single panel

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Values of the labels if all are numbers in ascending order.
std::optional<std::vector<double>> NumbersOf(const std::vector<std::string>& labels) {
  std::vector<double> numbers;
  for (const std::string& label : labels) {
    double number = 0;
    if (!absl::SimpleAtod(label, &number) || !std::isfinite(number)) return std::nullopt;
    if (!numbers.empty() && number <= numbers.back()) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() < 2) return std::nullopt;
  return numbers;
}

class Picture {
 public:
  explicit Picture(const ErrorPicture& picture)
      : p_(picture), numbers_(NumbersOf(picture.x_labels)) {
    TakeRange(p_.panels);
    if (empty()) return;
    in_row_ = p_.panels.size() == 1 ? 1 : 2;
    cell_ = in_row_ == 1 ? kMaxSingleWidth : (kPictureWidth - kGap) / static_cast<double>(in_row_);
    width_ = cell_ - kLeft - kRight;
  }

  bool empty() const { return !std::isfinite(y_.low) || p_.x_labels.empty(); }

  std::string Draw() {
    double top = 0;
    std::string svg = Legend(top);
    const double row = kTitle + kHeight + kAxis + LabelHeight();
    for (size_t i = 0; i < p_.panels.size(); ++i) {
      const double left = kLeft + static_cast<double>(i % in_row_) * (cell_ + kGap);
      const double at = top + kTitle + static_cast<double>(i / in_row_) * row;
      if (p_.own_scales) TakeRange({&p_.panels[i], 1});
      svg += DrawPanel(p_.panels[i], left, at);
    }
    const size_t rows = (p_.panels.size() + in_row_ - 1) / in_row_;
    return SvgPicture(top + static_cast<double>(rows) * row, svg);
  }

 private:
  // Sets the y range to that of these panels.
  void TakeRange(std::span<const ErrorPanel> panels) {
    y_ = {};
    for (const ErrorPanel& panel : panels) {
      for (const ErrorSeries& series : panel.series) {
        for (const ErrorPoint& point : series.points) {
          y_.Add(point.spread.low);
          y_.Add(point.spread.high);
          for (const double value : point.values) y_.Add(value);
        }
      }
    }
    if (!std::isfinite(y_.low)) return;
    if (p_.from_zero) y_.Add(0);
    const double margin = y_.high > y_.low ? (y_.high - y_.low) * 0.08 : 1;
    y_.high += margin;
    if (!p_.from_zero || y_.low < 0) y_.low -= margin;
  }

  double Slot() const { return width_ / static_cast<double>(p_.x_labels.size()); }

  bool Slanted() const {
    size_t longest = 0;
    for (const std::string& label : p_.x_labels) longest = std::max(longest, label.size());
    return static_cast<double>(longest) * kLetter > Slot() && !numbers_.has_value();
  }

  double LabelHeight() const {
    if (!Slanted()) return 0;
    size_t longest = 0;
    for (const std::string& label : p_.x_labels) longest = std::max(longest, label.size());
    return std::min(120.0, static_cast<double>(longest) * kLetter * 0.5);
  }

  // Middle of a label, from 0 to width_.
  double X(size_t x) const {
    if (!numbers_.has_value()) return (static_cast<double>(x) + 0.5) * Slot();
    const std::vector<double>& n = *numbers_;
    const bool log = n.front() > 0 && n.back() / n.front() >= 8;
    const double part = log ? std::log(n[x] / n.front()) / std::log(n.back() / n.front())
                            : (n[x] - n.front()) / (n.back() - n.front());
    return width_ * (0.05 + 0.9 * part);
  }
  double Y(double top, double y) const {
    return top + kHeight * (1 - (y - y_.low) / (y_.high - y_.low));
  }

  std::string Legend(double& top) const;
  std::string Axes(const ErrorPanel& panel, double left, double top) const;
  std::string DrawPanel(const ErrorPanel& panel, double left, double top) const;
  // `left`: includes the offset of the series.
  std::string Lines(const ErrorSeries& series, double left, double top) const;
  std::string Point(const ErrorSeries& series, const ErrorPoint& point, double x, double bar,
                    double top) const;

  const ErrorPicture& p_;
  const std::optional<std::vector<double>> numbers_;
  Range y_;
  size_t in_row_ = 1;
  double cell_ = 0, width_ = 0;
};

std::string Picture::Legend(double& top) const {
  const ErrorPanel* most = &p_.panels.front();
  for (const ErrorPanel& panel : p_.panels) {
    if (panel.series.size() > most->series.size()) most = &panel;
  }
  if (most->series.size() < 2) return "";
  std::string svg;
  double x = kLeft;
  top = kLegendLine;
  for (const ErrorSeries& series : most->series) {
    const double width = 34 + kLetter * static_cast<double>(series.name.size());
    if (x + width > kPictureWidth && x > kLeft) {
      x = kLeft;
      top += kLegendLine;
    }
    svg += SvgBar(x, top - 12, 14, 11, series.color, series.name);
    svg += SvgText(x + 19, top - 2, "start", "", series.name);
    x += width;
  }
  top += 4;
  return svg;
}

std::string Picture::Axes(const ErrorPanel& panel, double left, double top) const {
  std::string svg = SvgText(left, top - 8, "start", "name", panel.title);
  svg += SvgRect(left, top, width_, kHeight, "row");
  for (const double tick : NiceTicks(y_.low, y_.high, 6)) {
    svg += SvgLine(left, Y(top, tick), left + width_, Y(top, tick), "grid");
    svg += SvgText(left - 6, Y(top, tick) + 4, "end", "small", absl::StrFormat("%g", tick + 0.0));
  }
  const double bottom = top + kHeight;
  for (size_t i = 0; i < p_.x_labels.size(); ++i) {
    const double x = left + X(i);
    if (numbers_.has_value()) svg += SvgLine(x, bottom, x, bottom + 4, "grid");
    if (Slanted()) {
      absl::StrAppendFormat(&svg,
                            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" "
                            "transform=\"rotate(-30 %.1f %.1f)\">%s</text>\n",
                            x + 6, bottom + 14, x + 6, bottom + 14, XmlEscaped(p_.x_labels[i]));
    } else {
      svg += SvgText(x, bottom + 17, "middle", "", p_.x_labels[i]);
    }
  }
  const double names = bottom + 34 + LabelHeight();
  svg += SvgText(left + width_, names, "end", "small", p_.x_name);
  return svg + SvgText(left, names, "start", "small", absl::StrCat("up: ", p_.y_name));
}

std::string Picture::Lines(const ErrorSeries& series, double left, double top) const {
  std::string path;
  for (const ErrorPoint& point : series.points) {
    absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "M" : " L", left + X(point.x),
                          Y(top, point.spread.median));
  }
  if (path.empty()) return "";
  return absl::StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", series.color,
                      "\" stroke-width=\"1.6\" stroke-linejoin=\"round\"><title>",
                      XmlEscaped(series.name), "</title></path>\n");
}

// `bar`: its width; 0: no bar.
std::string Picture::Point(const ErrorSeries& series, const ErrorPoint& point, double x, double bar,
                           double top) const {
  const RepeatSpread& spread = point.spread;
  const std::string title =
      absl::StrFormat("%s, %s: %.5g [%.5g, %.5g], runs: %d", series.name, p_.x_labels[point.x],
                      spread.median, spread.low, spread.high, spread.count);
  const double at = Y(top, spread.median), zero = Y(top, 0);
  std::string svg;
  if (bar > 0) {
    svg += SvgBar(x - bar / 2, std::min(at, zero), bar, std::abs(zero - at), series.color, title);
    const double part = std::min(point.part, spread.median);
    if (part > 0) svg += SvgWaitBar(x - bar / 2, at, bar, Y(top, 0) - Y(top, part), title);
  }
  for (const double value : point.values) {
    absl::StrAppendFormat(&svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\" fill=\"var(--ink)\" "
                          "opacity=\"0.45\"/>\n",
                          x + (bar > 0 ? bar * 0.3 : 5), Y(top, value));
  }
  if (spread.count > 1) {
    const double low = Y(top, spread.low), high = Y(top, spread.high);
    svg += SvgLine(x, low, x, high, "range");
    svg += SvgLine(x - kCap, low, x + kCap, low, "range");
    svg += SvgLine(x - kCap, high, x + kCap, high, "range");
  }
  if (bar <= 0) {
    absl::StrAppendFormat(&svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.2\" fill=\"%s\" "
                          "class=\"dot\"><title>%s</title></circle>\n",
                          x, at, series.color, XmlEscaped(title));
  }
  return svg;
}

std::string Picture::DrawPanel(const ErrorPanel& panel, double left, double top) const {
  std::string svg = Axes(panel, left, top);
  const auto count = static_cast<double>(std::max<size_t>(1, panel.series.size()));
  const double each = std::min(kWidestBar, 0.8 * Slot() / count);
  const bool bars = HasBars(p_);
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const ErrorSeries& series = panel.series[i];
    const double aside =
        (static_cast<double>(i) - (count - 1) / 2) * (numbers_.has_value() ? kApart : each);
    if (numbers_.has_value()) svg += Lines(series, left + aside, top);
    for (const ErrorPoint& point : series.points) {
      svg += Point(series, point, left + X(point.x) + aside, bars ? each * 0.92 : 0, top);
    }
  }
  return svg;
}

}  // namespace

bool HasBars(const ErrorPicture& picture) {
  return picture.from_zero && !NumbersOf(picture.x_labels).has_value();
}

std::string ErrorPanelsSvg(const ErrorPicture& picture) {
  Picture drawn(picture);
  return drawn.empty() ? "" : drawn.Draw();
}

}  // namespace tug
