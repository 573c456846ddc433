// SPDX-License-Identifier: Apache-2.0
#include "experiment/charts/curve_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/xml_text.h"
#include "experiment/charts/svg.h"

namespace tug {
namespace {

constexpr size_t kInRow = 2;
constexpr double kLeft = 62, kNames = 122, kGap = 16;
constexpr double kCell = (kPictureWidth - kGap) / kInRow;
constexpr double kWidth = kCell - kLeft - kNames;
constexpr double kHeight = 300, kTitle = 28, kAxis = 44;
constexpr double kNameHeight = 13.5;
constexpr char kSolid[] = "stroke-width=\"1.5\"";
constexpr char kDashed[] = "stroke-width=\"1.2\" stroke-dasharray=\"3 4\"";

bool Drawable(const CurvePoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Position within [low, high], from 0 to 1, on a logarithmic scale.
  double Part(double value) const {
    return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
  }
};

// 1, 2 and 5 times powers of ten; only the powers if that is too many.
std::vector<double> LogTicks(const Range& range) {
  const bool many = range.high / range.low > 3000;
  std::vector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high;
       power *= 10) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double tick = power * times;
      if ((many && times > 1) || tick < range.low * 0.999 || tick > range.high * 1.001) continue;
      ticks.push_back(tick);
    }
  }
  return ticks;
}

class Axes {
 public:
  Axes(const CurvePanel& panel, double left, double top) : left_(left), top_(top) {
    for (const Curve& curve : panel.curves) {
      for (const auto* points : {&curve.line, &curve.dashed, &curve.dots}) {
        for (const CurvePoint& p : *points) {
          if (!Drawable(p)) continue;
          x_.Add(p.x);
          y_.Add(p.y);
        }
      }
    }
    y_.low /= 1.15;
    y_.high *= 1.15;
  }

  bool empty() const { return !(x_.high > 0); }
  double X(double x) const { return left_ + kWidth * x_.Part(x); }
  double Y(double y) const { return top_ + kHeight * (1 - y_.Part(y)); }

  std::string Draw(const CurvePanel& panel) const {
    std::string svg = SvgText(left_, top_ - 12, "start", "name", panel.title);
    svg += SvgRect(left_, top_, kWidth, kHeight, "row");
    for (const double tick : LogTicks(y_)) {
      svg += SvgLine(left_, Y(tick), left_ + kWidth, Y(tick), "grid");
      svg += SvgText(left_ - 6, Y(tick) + 4, "end", "small", absl::StrFormat("%g", tick));
    }
    const double bottom = top_ + kHeight;
    for (const double tick : LogTicks(x_)) {
      svg += SvgLine(X(tick), bottom, X(tick), bottom + 4, "grid");
      svg += SvgText(X(tick), bottom + 17, "middle", "small", absl::StrFormat("%g", tick));
    }
    svg += SvgText(left_ + kWidth, bottom + 34, "end", "small", panel.x_name);
    return svg + SvgText(left_, bottom + 34, "start", "small", absl::StrCat("up: ", panel.y_name));
  }

  std::string Line(const Curve& curve, const std::vector<CurvePoint>& points,
                   const char* style) const {
    std::string path;
    for (const CurvePoint& p : points) {
      if (!Drawable(p)) continue;
      absl::StrAppendFormat(&path, "%s%.1f,%.1f", path.empty() ? "M" : " L", X(p.x), Y(p.y));
    }
    if (path.empty()) return "";
    return absl::StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", curve.color,
                        "\" stroke-linejoin=\"round\" ", style, "><title>", XmlEscaped(curve.name),
                        "</title></path>\n");
  }

  std::string Dots(const Curve& curve) const {
    std::string svg;
    for (const CurvePoint& p : curve.dots) {
      if (!Drawable(p)) continue;
      absl::StrAppendFormat(&svg,
                            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" "
                            "class=\"dot\"><title>%s: %.4g</title></circle>\n",
                            X(p.x), Y(p.y), curve.color, XmlEscaped(curve.name), p.y);
    }
    return svg;
  }

  // Names at the ends of lines, one below another if these are close together.
  std::string Names(const CurvePanel& panel) const {
    struct Name {
      const Curve* curve;
      double y;
    };
    std::vector<Name> names;
    for (const Curve& curve : panel.curves) {
      if (curve.line.empty() || !Drawable(curve.line.back())) continue;
      names.push_back({&curve, Y(curve.line.back().y) + 4});
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const Name& a, const Name& b) { return a.y < b.y; });
    for (size_t i = 1; i < names.size(); ++i) {
      names[i].y = std::max(names[i].y, names[i - 1].y + kNameHeight);
    }
    // Keeps names inside the picture, by moving them up from the bottom.
    double lowest = top_ + kHeight + 4;
    for (size_t i = names.size(); i > 0; --i) {
      names[i - 1].y = std::min(names[i - 1].y, lowest);
      lowest = names[i - 1].y - kNameHeight;
    }
    std::string svg;
    for (const Name& name : names) {
      absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" style=\"fill:%s\">%s</text>\n",
                            left_ + kWidth + 8, name.y, name.curve->color,
                            XmlEscaped(name.curve->name));
    }
    return svg;
  }

 private:
  const double left_, top_;
  Range x_, y_;
};

}  // namespace

std::string CurvePanelsSvg(const std::vector<CurvePanel>& panels) {
  std::string svg;
  size_t drawn = 0;
  for (const CurvePanel& panel : panels) {
    const double left = kLeft + static_cast<double>(drawn % kInRow) * (kCell + kGap);
    const double top = kTitle + static_cast<double>(drawn / kInRow) * (kTitle + kHeight + kAxis);
    const Axes axes(panel, left, top);
    if (axes.empty()) continue;
    ++drawn;
    svg += axes.Draw(panel);
    for (const Curve& curve : panel.curves) {
      svg += axes.Line(curve, curve.dashed, kDashed) + axes.Line(curve, curve.line, kSolid);
    }
    for (const Curve& curve : panel.curves) svg += axes.Dots(curve);
    svg += axes.Names(panel);
  }
  if (drawn == 0) return "";
  const auto rows = static_cast<double>((drawn + kInRow - 1) / kInRow);
  return SvgPicture(rows * (kTitle + kHeight + kAxis), svg);
}

}  // namespace tug
