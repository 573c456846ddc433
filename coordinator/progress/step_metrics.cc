// SPDX-License-Identifier: Apache-2.0
#include "coordinator/progress/step_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace tug {

StepMetrics FoldStep(uint64_t step, std::span<const StepShare> shares) {
  StepMetrics metrics;
  metrics.step = step;
  double loss_sum = 0, residual_squares = 0;
  bool any = false;
  // A worker reports the same figures for a clock with each of its virtual workers: count them
  // once.
  std::set<std::pair<uint32_t, uint64_t>> workers;
  for (const auto& [node_id, report] : shares) {
    metrics.workers.push_back({.virtual_worker = report.virtual_worker(),
                               .skipped = report.skipped(),
                               .seconds = report.step_seconds(),
                               .compute_seconds = report.compute_seconds(),
                               .wait_seconds = report.wait_seconds(),
                               .straggle_seconds = report.straggle_seconds()});
    if (report.skipped()) {
      ++metrics.skipped;
      continue;
    }
    if (!std::exchange(any, true)) metrics.schedule = report.schedule();
    if (metrics.schedule != report.schedule()) metrics.schedule.reset();
    loss_sum += report.loss_sum();
    residual_squares += report.residual_squares();
    metrics.tokens += report.tokens();
    metrics.targets += report.targets();
    metrics.seconds = std::max(metrics.seconds, report.step_seconds());
    metrics.wait_seconds = std::max(metrics.wait_seconds, report.wait_seconds());
    metrics.compute_seconds = std::max(metrics.compute_seconds, report.compute_seconds());
    metrics.straggle_seconds = std::max(metrics.straggle_seconds, report.straggle_seconds());
    metrics.communication_seconds =
        std::max(metrics.communication_seconds, report.communication_seconds());
    if (report.communication_seconds() > 0) {
      const double hidden = 1 - report.wait_seconds() / report.communication_seconds();
      metrics.overlap = std::min(metrics.overlap, std::clamp(hidden, 0.0, 1.0));
    }
    if (workers.emplace(node_id, report.clock()).second) {
      metrics.pushed_bytes += report.pushed_bytes();
      metrics.pulled_bytes += report.pulled_bytes();
      metrics.mean_seconds += report.step_seconds();
      metrics.mean_wait_seconds += report.wait_seconds();
    }
  }
  if (!any) {
    metrics.loss = std::numeric_limits<double>::quiet_NaN();
    return metrics;
  }
  const auto reporters = static_cast<double>(workers.size());
  metrics.mean_seconds /= reporters;
  metrics.mean_wait_seconds /= reporters;
  metrics.residual_norm =
      std::sqrt(residual_squares / static_cast<double>(shares.size() - metrics.skipped));
  metrics.loss = metrics.targets == 0 ? 0 : loss_sum / static_cast<double>(metrics.targets);
  return metrics;
}

}  // namespace tug
