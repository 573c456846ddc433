#ifndef TUG_COORDINATOR_THINNED_CURVE_H_
#define TUG_COORDINATOR_THINNED_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tug {

// Steps of a job as at most so many points, however long it is: a point is the mean of `stride`
// steps in a row. When there are too many, two neighbours become one and the stride is doubled, so
// a step costs the same all along. Not thread-safe.
class ThinnedCurve {
 public:
  struct Point {
    uint64_t step = 0;      // the last of them
    double at_seconds = 0;  // when that was done, since the job began
    double loss = 0;        // mean over those that are finite; NaN: none is
    double seconds = 0;     // mean of a step
    double tokens = 0;      // mean of a step

    friend bool operator==(const Point&, const Point&) = default;
  };

  // REQUIRES: even, at least 2.
  explicit ThinnedCurve(size_t most_points) : most_points_(most_points) {}

  // `step` of one step. What has come of later ones, or of the same one, is forgotten: the job has
  // gone back.
  enum class Added { kInPoint, kNewPoint, kOthers };
  // kInPoint: points() are as before; kNewPoint: there is one more; kOthers: they are others.
  Added Add(const Point& step);

  // Those that are whole, in order.
  const std::vector<Point>& points() const { return points_; }
  // The mean of the steps since the last one; none: there was none.
  std::optional<Point> open() const;
  uint64_t stride() const { return stride_; }

 private:
  struct Sums {
    uint64_t steps = 0;
    uint64_t finite = 0;
    Point last;  // step, at_seconds
    double loss = 0, seconds = 0, tokens = 0;
  };

  void Halve();

  const size_t most_points_;
  uint64_t stride_ = 1;
  std::vector<Point> points_;
  Sums open_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_THINNED_CURVE_H_
