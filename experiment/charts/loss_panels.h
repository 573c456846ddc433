// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_CHARTS_LOSS_PANELS_H_
#define TUG_EXPERIMENT_CHARTS_LOSS_PANELS_H_

// Losses of several runs, over x axes of choice.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiment/measures/run_figures.h"

namespace tug {

// One run. Line: training loss, as a moving mean over 1/40 of the run; it ends where it is not
// finite. Dots: evaluations.
struct LossSeries {
  std::string name;
  std::string color;  // CSS
  const RunFigures* figures = nullptr;
  // X coordinate, from 0 on, of a job step that completed at `seconds`.
  std::function<double(uint64_t step, double seconds)> x;
};

struct LossPanel {
  std::string x_name;
  std::vector<LossSeries> series;
};

struct LossRow {
  std::string title;
  std::vector<LossPanel> panels;  // up to four
};

// An <svg> in which all panels share one loss axis; "" if there is nothing to draw. Pure,
// thread-safe.
std::string LossPanelsSvg(const std::vector<LossRow>& rows);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CHARTS_LOSS_PANELS_H_
