// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_LOSS_CURVE_H_
#define TUG_COORDINATOR_OBSERVE_LOSS_CURVE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tug {

struct LossPoint {
  uint64_t step = 0;
  double loss = 0;
};

// Settings that changed when a run was resumed at a step: "train.steps 300 -> 600".
struct SettingsChange {
  uint64_t step = 0;
  std::vector<std::string> changed;
};

// Losses of one run; each series in order of step.
struct LossCurve {
  std::string title;
  std::vector<LossPoint> training;
  std::vector<LossPoint> validation;
  std::vector<SettingsChange> settings;
};

// The curve as an SVG image, 860 wide: faint training loss under its moving average, validation
// loss as dots, a dashed line where settings changed, axes with round numbers, a legend. Skips
// points that are not finite; thins long series to a few points per pixel column. Pure,
// thread-safe.
std::string LossCurveSvg(const LossCurve& curve);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_LOSS_CURVE_H_
