// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_CHARTS_CURVE_PANELS_H_
#define TUG_EXPERIMENT_CHARTS_CURVE_PANELS_H_

// Curves and measured points on logarithmic axes, panels side by side. Pure, thread-safe.

#include <string>
#include <vector>

namespace tug {

struct CurvePoint {
  double x = 0, y = 0;
};

struct Curve {
  std::string name;                // shown at the end of its line
  std::string color;               // CSS
  std::vector<CurvePoint> line;    // in order of x
  std::vector<CurvePoint> dashed;  // a second line, in order of x
  std::vector<CurvePoint> dots;
};

struct CurvePanel {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<Curve> curves;
};

// An <svg> with up to two panels per row, each with its own axes; "" if there is nothing to draw.
// Skips points that are not above 0 and finite.
std::string CurvePanelsSvg(const std::vector<CurvePanel>& panels);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CHARTS_CURVE_PANELS_H_
