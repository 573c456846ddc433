// SPDX-License-Identifier: Apache-2.0
#include "optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tug {
namespace {

// Remaining fraction of peak - min at `step` in [begin, decay); 1 at `begin`.
double LineLeft(double step, double begin, double decay) {
  return 1.0 - (step - begin) / (decay - begin);
}

double CosineLeft(double step, double begin, double decay) {
  const double progress = (step - begin) / (decay - begin);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double LearningRateAt(const OptimizerConfig& config, double step) {
  const double peak = config.learning_rate();
  const double floor = config.min_learning_rate();
  // Whole numbers up to 2^53 are exact, and so are their differences.
  const auto warmup = static_cast<double>(config.warmup_steps());
  const auto decay = static_cast<double>(config.decay_steps());
  if (step < warmup) return peak * (step + 1) / (warmup + 1);
  switch (config.schedule()) {
    case OptimizerConfig::SCHEDULE_DEFAULT:
    case OptimizerConfig::COSINE:
      if (step >= decay) return floor;
      return floor + (peak - floor) * CosineLeft(step, warmup, decay);
    case OptimizerConfig::LINEAR:
      if (step >= decay) return floor;
      return floor + (peak - floor) * LineLeft(step, warmup, decay);
    case OptimizerConfig::CONSTANT:
      return peak;
    case OptimizerConfig::INVERSE_SQRT:
      return std::max(floor, peak * std::sqrt((warmup + 1) / (step + 1)));
    case OptimizerConfig::STABLE_DECAY: {
      if (step >= decay) return floor;
      const auto last_fifth = static_cast<double>(config.decay_steps() / 5);
      const double begin = std::max(warmup, decay - last_fifth);
      if (step < begin) return peak;
      return floor + (peak - floor) * LineLeft(step, begin, decay);
    }
    default:
      TUG_CHECK(false) << "schedule " << config.schedule();
      return 0;
  }
}

}  // namespace tug
