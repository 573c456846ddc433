#ifndef TUG_COORDINATOR_LOSS_CURVE_H_
#define TUG_COORDINATOR_LOSS_CURVE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tug {

struct LossPoint {
  uint64_t step = 0;
  double loss = 0;
};

// Of one run; each series in order of step.
struct LossCurve {
  std::string title;
  std::vector<LossPoint> training;
  std::vector<LossPoint> validation;
};

// The curve as an SVG picture, 860 x 480: training loss faint with its moving average over it,
// validation loss as dots, axes with round numbers, a legend. Points that are not finite are left
// out; long series are thinned to a few points a pixel column. Pure, thread-safe.
std::string LossCurveSvg(const LossCurve& curve);

// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high], about `wanted` of them;
// at least one if low <= high are finite.
std::vector<double> NiceTicks(double low, double high, int wanted);

}  // namespace tug

#endif  // TUG_COORDINATOR_LOSS_CURVE_H_
