// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_THINNED_CURVE_H_
#define TUG_COORDINATOR_OBSERVE_THINNED_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tug {

// Steps of a job as a bounded number of points: a point is the mean of `stride` consecutive steps.
// At the limit, neighbours are merged in pairs and the stride doubles, so that adding a step has
// constant amortised cost. Not thread-safe.
class ThinnedCurve {
 public:
  struct Point {
    uint64_t step = 0;      // last step of the point
    double at_seconds = 0;  // end of that step, since the coordinator began
    double loss = 0;        // mean over finite losses; NaN: none
    double seconds = 0;     // mean per step
    double tokens = 0;      // mean per step

    friend bool operator==(const Point&, const Point&) = default;
  };

  // REQUIRES: even, at least 2.
  explicit ThinnedCurve(size_t max_points) : max_points_(max_points) {}

  // `step`: a point of one step. Points of this step and later ones are dropped first: the job
  // rolled back.
  enum class Added { kInPoint, kNewPoint, kOthers };
  // kInPoint: points() is unchanged; kNewPoint: it has one more; kOthers: existing points changed.
  Added Add(const Point& step);

  // Complete points, in order.
  const std::vector<Point>& points() const { return points_; }
  // Mean of the steps since the last complete point; none: no steps.
  std::optional<Point> open() const;
  uint64_t stride() const { return stride_; }

 private:
  struct Sums {
    uint64_t steps = 0;
    uint64_t finite = 0;
    Point last;  // only step and at_seconds
    double loss = 0, seconds = 0, tokens = 0;
  };

  void Halve();

  const size_t max_points_;
  uint64_t stride_ = 1;
  std::vector<Point> points_;
  Sums open_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_THINNED_CURVE_H_
