// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SCHEDULER_TUNER_H_
#define TUG_SCHEDULER_TUNER_H_

// Chooses partition and credit from the times of live steps, by Bayesian optimisation. Paper: Peng
// et al. 2019 (ByteScheduler, SOSP), section 4.3.
//
//   1. Trial 1 measures the point in effect: the job's own.
//   2. Without a prediction, the next kDesign trials spread over all points. A prediction makes
//      them unnecessary: the mean is known before anything is measured.
//   3. Then each trial measures the new point with the largest expected improvement over the best
//      so far. The model is a Gaussian process (gaussian_process.h) of the logarithm of the step
//      time over the logarithms of partition and credit, around the prediction if there is one.
//   4. The last trials, three of twenty, measure the most promising tried points again: one lucky
//      measurement does not make a fast point. "Best" always means by the process's mean.
//   5. The tuner settles on the best. The time of a trial is the median of its steps; a trial whose
//      first two steps both took over twice the best's time ends with them.
//   6. Once settled, it compares the median of the newest steps with that of the first steps after
//      settling. When they differ by more than `drift`, either way, for a whole window of steps in
//      a row, it forgets everything and starts at 1., from the current point.

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
    std::vector<SchedulePoint> points;  // to choose from: SchedulePoints()
    SchedulePoint own;                  // need not be one of them
    uint32_t trials = 20;
    uint32_t steps_per_trial = 5;
    double drift = 0.2;
  };
  struct Trial {
    uint32_t number = 0;  // 1, 2, ... since the last (re)start
    SchedulePoint point;
    double seconds = 0;    // per step, measured
    double predicted = 0;  // by the process before the trial; 0: no prediction (first trial)
  };
  // Result of a search.
  struct Settled {
    SchedulePoint point;
    double seconds = 0;        // per step, by the process's mean
    double first_seconds = 0;  // the same for the first trial's point
    uint32_t trials = 0;
  };
  enum class Event { kNone, kTrial, kSettled, kDrift };

  static constexpr uint32_t kDesign = 4;
  static constexpr size_t kHopelessSteps = 2;
  static constexpr double kHopelessFactor = 2;
  static constexpr size_t kMinDriftSteps = 10;  // minimum window; never less than a trial

  // REQUIRES: at least one point; trials, steps_per_trial >= 1.
  explicit Tuner(Options options);

  // Point to run the next step under.
  const SchedulePoint& Suggest() const { return points_[current_]; }
  // Adds the time of a step run under Suggest(). kTrial: trial() is new. kSettled: so is settled(),
  // and Suggest() is the settled point from now on. kDrift: the tuner has started again.
  Event Observe(double step_seconds);
  // Sets the predicted step times of all points(), in any unit; used until the next drift.
  void SetPrediction(std::vector<double> seconds);

  // Options::points, plus the job's own point if it is not among them.
  const std::vector<SchedulePoint>& points() const { return points_; }
  const Trial& trial() const { return trial_; }
  bool is_settled() const { return settled_.has_value(); }
  const Settled& settled() const { return *settled_; }
  // Medians of settled and newest steps when drift was found.
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
  // Best tried point by the process's mean.
  size_t BestTried(const GaussianProcess& process) const;
  size_t MostPromisingTried(const GaussianProcess& process) const;
  size_t DesignPoint(uint32_t index) const;
  void Settle(const GaussianProcess& process);
  Event WatchDrift(double step_seconds);

  const Options options_;
  const std::vector<SchedulePoint> points_;
  const size_t window_;           // steps per median for the drift check
  std::vector<double> expected_;  // logarithms, centred on 0; empty: no prediction
  size_t first_ = 0;              // index of the first trial's point
  size_t current_ = 0;
  uint32_t trials_done_ = 0;
  std::vector<double> steps_;  // seconds of the trial in progress
  double spread_ = 0;          // sum of squares of steps' logarithms around their trial's
  size_t spread_steps_ = 0;    // degrees of freedom in it
  std::vector<Tried> tried_;   // by point
  std::optional<GaussianProcess> process_;  // fitted to all finished trials
  Trial trial_;
  std::optional<Settled> settled_;
  std::deque<double> newest_;  // steps since it settled, up to window_
  double settled_median_ = 0;  // 0: not yet known
  double newest_median_ = 0;
  size_t drifted_ = 0;  // consecutive steps
};

}  // namespace tug

#endif  // TUG_SCHEDULER_TUNER_H_
