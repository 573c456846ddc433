#ifndef TUG_SCHEDULER_TUNER_H_
#define TUG_SCHEDULER_TUNER_H_

// Chooses partition and credit from the times of live steps, by Bayesian optimisation. Paper: Peng
// et al. 2019 (ByteScheduler, SOSP), section 4.3.
//
//   1. Trial 1 is of the point that is in effect: the job's own.
//   2. Without a prediction the next kDesign trials spread over all points; with one there is no
//      need: the mean is known before anything is measured.
//   3. Then each trial is of the new point with the largest expected improvement over the best so
//      far, under a Gaussian process (gaussian_process.h) of the logarithm of the step time over
//      the logarithms of partition and credit, around the prediction where there is one.
//   4. The last trials, three of twenty, measure again what may be the best of those tried: one
//      lucky measurement is not a fast point. "Best" is always by the process's mean.
//   5. It settles on the best. A trial's time is the median of its steps; one whose first two steps
//      both took over twice the best's ends with them.
//   6. Settled, it compares the median of the newest steps with that of the first ones after it
//      settled. Once they differ by more than `drift`, either way, for as many steps in a row, it
//      forgets everything and starts at 1., from where it is.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "scheduler/gaussian_process.h"
#include "scheduler/schedule_points.h"

namespace tug {

// Pure: no thread, no clock. Deterministic. Not thread-safe.
class Tuner {
 public:
  struct Options {
    std::vector<SchedulePoint> points;  // to choose from; SchedulePoints()
    SchedulePoint own;                  // need not be one of them
    uint32_t trials = 20;
    uint32_t steps_per_trial = 5;
    double drift = 0.2;
  };
  struct Trial {
    uint32_t number = 0;  // 1, 2, ... since it started (again)
    SchedulePoint point;
    double seconds = 0;    // a step, measured
    double predicted = 0;  // what the process expected before; 0: of the first, nothing
  };
  // What it settled on.
  struct Settled {
    SchedulePoint point;
    double seconds = 0;        // a step, by the process's mean
    double first_seconds = 0;  // of the first trial's point, likewise
    uint32_t trials = 0;
  };
  enum class Event { kNone, kTrial, kSettled, kDrift };

  static constexpr uint32_t kDesign = 4;
  static constexpr size_t kHopelessSteps = 2;
  static constexpr double kHopelessFactor = 2;
  static constexpr size_t kLeastDriftSteps = 10;  // in a window; at least a trial's

  // REQUIRES: at least one point; trials, steps_per_trial >= 1.
  explicit Tuner(Options options);

  // What steps are to run under.
  const SchedulePoint& Suggest() const { return points_[current_]; }
  // A step ran under it. kTrial: trial() is new; kSettled: and so is settled(), and Suggest() is
  // the settled point from now on; kDrift: it has started again.
  Event Observe(double step_seconds);
  // The step times that somebody expects of all points(), in any unit; from now until drift.
  void SetPrediction(std::vector<double> seconds);

  // Options::points, and the job's own where it is none of them.
  const std::vector<SchedulePoint>& points() const { return points_; }
  const Trial& trial() const { return trial_; }
  bool is_settled() const { return settled_.has_value(); }
  const Settled& settled() const { return *settled_; }
  // Where drift was found: the medians of settled and newest steps.
  double settled_median() const { return settled_median_; }
  double newest_median() const { return newest_median_; }

 private:
  struct Tried {
    double sum = 0;  // of the logarithms of its trials' seconds
    uint32_t trials = 0;
  };

  void StartAgain();
  GpPoint Place(size_t point) const;
  std::vector<GpObservation> Observations() const;
  double LikelyNoise() const;
  bool IsHopeless() const;
  void EndTrial();
  size_t NextPoint(const GaussianProcess& process) const;
  // Of those tried, by the process's mean.
  size_t BestTried(const GaussianProcess& process) const;
  size_t MostPromisingTried(const GaussianProcess& process) const;
  size_t DesignPoint(uint32_t index) const;
  void Settle(const GaussianProcess& process);
  Event WatchDrift(double step_seconds);

  const Options options_;
  const std::vector<SchedulePoint> points_;
  const size_t window_;           // steps whose median is looked at for drift
  std::vector<double> expected_;  // logarithms, around 0; empty: nothing is predicted
  size_t first_ = 0;              // index of the first trial's point
  size_t current_ = 0;
  uint32_t trials_done_ = 0;
  std::vector<double> steps_;  // seconds, of the trial in progress
  double spread_ = 0;          // sum of squares of steps' logarithms around their trial's
  size_t spread_steps_ = 0;    // degrees of freedom in it
  std::vector<Tried> tried_;   // by point
  std::optional<GaussianProcess> process_;  // of all trials done
  Trial trial_;
  std::optional<Settled> settled_;
  std::deque<double> newest_;  // steps since it settled, up to window_
  double settled_median_ = 0;  // 0: not yet known
  double newest_median_ = 0;
  size_t drifted_ = 0;  // steps in a row
};

}  // namespace tug

#endif  // TUG_SCHEDULER_TUNER_H_
