// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_ERROR_PANELS_H_
#define TUG_LAB_EXPERIMENT_CHARTS_ERROR_PANELS_H_

// A measure with error bars over labels or numbers, in panels with the same x axis. Pure,
// thread-safe.

#include <cstddef>
#include <string>
#include <vector>

#include "lab/experiment/measures/spread.h"

namespace tug {

struct ErrorPoint {
  size_t x = 0;  // index into x_labels
  RepeatSpread spread;
  std::vector<double> values;  // measured values
  double part = 0;             // part of the median that its bar has hatched
};

struct ErrorSeries {
  std::string name;
  std::string color;  // CSS
  std::vector<ErrorPoint> points;
};

struct ErrorPanel {
  std::string title;  // may be empty
  std::vector<ErrorSeries> series;
};

struct ErrorPicture {
  std::string x_name;
  std::vector<std::string> x_labels;  // if all are numbers, lines join the points
  std::string y_name;
  bool from_zero = true;    // the y axis begins at 0; over labels that are words, values are bars
  bool own_scales = false;  // every panel has its own y scale; else all share one
  std::vector<ErrorPanel> panels;
};

// Whether values are drawn as bars, with the part of each hatched.
bool HasBars(const ErrorPicture& picture);

// An <svg> with medians, error bars, and every value as a faint dot; "" if there is nothing to
// draw. Numeric labels are placed at their value on the axis, which is logarithmic if they span a
// factor of eight or more.
std::string ErrorPanelsSvg(const ErrorPicture& picture);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_ERROR_PANELS_H_
