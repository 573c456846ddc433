// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/charts/loss_panels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

namespace tug {
namespace {

constexpr size_t kMaxPoints = 160;  // per line
constexpr size_t kWindows = 40;     // of the moving mean, per run

}  // namespace

Chart LossPanel(const std::string& title, const std::string& x_name) {
  return {.title = title,
          .height = 190,
          .x = {.name = x_name, .from_zero = true, .margin = 0.02, .wanted = 5},
          .y = {.margin = 0.03, .wanted = 5, .grid = true}};
}

void AddLosses(const RunFigures& figures, const std::string& name, const std::string& color,
               const std::function<double(uint64_t step, double seconds)>& x, Chart& panel) {
  const std::vector<StepPoint>& steps = figures.steps;
  const size_t window = std::max<size_t>(1, steps.size() / kWindows);
  const size_t stride = std::max<size_t>(1, steps.size() / kMaxPoints);
  ChartLine line{.color = color, .title = name};
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].loss;
    if (i >= window) sum -= steps[i - window].loss;
    if (!std::isfinite(sum)) break;  // diverged: nothing to draw from here on
    if (i % stride != 0 && i + 1 != steps.size()) continue;
    line.points.push_back(
        {x(steps[i].step, steps[i].seconds), sum / static_cast<double>(std::min(i + 1, window))});
  }
  panel.lines.push_back(std::move(line));
  for (const EvalPoint& point : figures.evals) {
    if (!std::isfinite(point.loss)) continue;
    panel.dots.push_back({{x(point.step, point.seconds), point.loss},
                          color,
                          absl::StrFormat("%s: %.4f", name, point.loss),
                          2.8});
  }
}

std::string LossPanelsSvg(const std::vector<Chart>& panels,
                          const std::vector<std::pair<std::string, std::string>>& legend) {
  return ChartsSvg(panels, {.columns = kLossPanels,
                            .left = 46,
                            .right = 10,
                            .between = 40,
                            .same_y = true,
                            .legend = legend});
}

}  // namespace tug
