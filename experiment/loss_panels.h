#ifndef TUG_EXPERIMENT_LOSS_PANELS_H_
#define TUG_EXPERIMENT_LOSS_PANELS_H_

// Losses of several runs, against whatever they are to be compared by.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiment/run_figures.h"

namespace tug {

// One run. Line: its training loss, a moving mean over a fortieth of the run; dots: evaluations. A
// line ends where it is not finite.
struct LossSeries {
  std::string name;
  std::string color;  // CSS
  const RunFigures* figures = nullptr;
  // Where a point of it stands, from 0 on: of a job step that was complete at `seconds`.
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

// An <svg>, all of its panels over the same losses; "" where there is nothing to draw. Pure,
// thread-safe.
std::string LossPanelsSvg(const std::vector<LossRow>& rows);

}  // namespace tug

#endif  // TUG_EXPERIMENT_LOSS_PANELS_H_
