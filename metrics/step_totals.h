// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_STEP_TOTALS_H_
#define TUG_METRICS_STEP_TOTALS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "metrics/metric_row.h"

namespace tug {

// Totals over a worker's steps since the process started. One thread adds, any thread reads: a
// reader may see a step in some totals and not yet in others.
class StepTotals {
 public:
  // Upper bounds of the histogram of step times, in seconds: 1 ms to 5 minutes.
  static constexpr std::array<double, 17> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};

  // One step of the worker, for all its virtual workers together.
  struct Step {
    double seconds = 0;
    double compute_seconds = 0;
    double wait_seconds = 0;
    double communication_seconds = 0;
    double straggle_seconds = 0;
    uint64_t tokens = 0;
  };
  void Add(const Step& step);

  struct Figures {
    HistogramFigures seconds;
    double compute_seconds = 0;
    double wait_seconds = 0;
    double communication_seconds = 0;
    double straggle_seconds = 0;
    uint64_t tokens = 0;
  };
  Figures figures() const;

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_ = {};
  std::atomic<double> seconds_ = 0;
  std::atomic<double> compute_seconds_ = 0;
  std::atomic<double> wait_seconds_ = 0;
  std::atomic<double> communication_seconds_ = 0;
  std::atomic<double> straggle_seconds_ = 0;
  std::atomic<uint64_t> tokens_ = 0;
};

}  // namespace tug

#endif  // TUG_METRICS_STEP_TOTALS_H_
