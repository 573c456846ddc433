#ifndef TUG_EXPERIMENT_CURVE_PANELS_H_
#define TUG_EXPERIMENT_CURVE_PANELS_H_

// Curves and measured points on logarithmic axes, panels side by side. Pure, thread-safe.

#include <string>
#include <vector>

namespace tug {

struct CurvePoint {
  double x = 0, y = 0;
};

struct Curve {
  std::string name;                // beside the end of its line
  std::string color;               // CSS
  std::vector<CurvePoint> line;    // in order of x
  std::vector<CurvePoint> dashed;  // as well
  std::vector<CurvePoint> dots;
};

struct CurvePanel {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<Curve> curves;
};

// An <svg>, with up to two panels in a row, each with axes of its own; "" where there is nothing to
// draw. Points that are not above 0 and finite are left out.
std::string CurvePanelsSvg(const std::vector<CurvePanel>& panels);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CURVE_PANELS_H_
