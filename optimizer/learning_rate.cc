#include "optimizer/learning_rate.h"

#include <cmath>
#include <numbers>

namespace tug {

double LearningRateAt(const OptimizerConfig& config, uint64_t step) {
  const double peak = config.learning_rate();
  const double floor = config.min_learning_rate();
  const auto warmup = config.warmup_steps();
  const auto decay = config.decay_steps();
  if (step < warmup) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  }
  if (step >= decay) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(decay - warmup);
  return floor + (peak - floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace tug
