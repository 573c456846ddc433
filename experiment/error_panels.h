#ifndef TUG_EXPERIMENT_ERROR_PANELS_H_
#define TUG_EXPERIMENT_ERROR_PANELS_H_

// A measure over the values of something, with error bars: panels side by side over the same axis.
// Pure, thread-safe.

#include <cstddef>
#include <string>
#include <vector>

#include "experiment/spread.h"

namespace tug {

struct ErrorPoint {
  size_t x = 0;  // which of the labels
  RepeatSpread spread;
  std::vector<double> values;  // what it is of
  double part = 0;             // of the median, which its bar has hatched
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
  std::vector<std::string> x_labels;  // where all are numbers, points are joined by lines
  std::string y_name;
  bool from_zero = true;    // the axis begins there, and values that are no numbers have bars
  bool own_scales = false;  // every panel has one; else all have one
  std::vector<ErrorPanel> panels;
};

// Whether values stand as bars, in which the part of each is hatched.
bool HasBars(const ErrorPicture& picture);

// An <svg>: the median, its error bar, and every value as a faint dot; "" where there is nothing to
// draw. Numbers stand where they are on their axis, a logarithmic one where they span a factor of
// eight or more.
std::string ErrorPanelsSvg(const ErrorPicture& picture);

}  // namespace tug

#endif  // TUG_EXPERIMENT_ERROR_PANELS_H_
