// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_LOSS_PANELS_H_
#define TUG_LAB_EXPERIMENT_CHARTS_LOSS_PANELS_H_

// Losses of several runs, over x axes of choice. Pure, thread-safe.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/charts/chart.h"
#include "lab/experiment/measures/run_figures.h"

namespace tug {

inline constexpr size_t kLossPanels = 4;  // in a row

Chart LossPanel(const std::string& title, const std::string& x_name);

// Adds a run to a panel. Line: training loss, as a moving mean over 1/40 of the run; it ends where
// it is not finite. Dots: evaluations. `x`: coordinate, from 0 on, of a job step that completed at
// `seconds`.
void AddLosses(const RunFigures& figures, const std::string& name, const std::string& color,
               const std::function<double(uint64_t step, double seconds)>& x, Chart& panel);

// An <svg> in which all panels share one loss axis; "" if there is nothing to draw. `legend`: names
// and colours.
std::string LossPanelsSvg(const std::vector<Chart>& panels,
                          const std::vector<std::pair<std::string, std::string>>& legend);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_LOSS_PANELS_H_
