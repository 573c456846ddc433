#include "optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tug {
namespace {

// How much of peak - min is left at `step`, in [begin, decay), where 1 is left at `begin`.
double LineLeft(uint64_t step, uint64_t begin, uint64_t decay) {
  return 1.0 - static_cast<double>(step - begin) / static_cast<double>(decay - begin);
}

double CosineLeft(uint64_t step, uint64_t begin, uint64_t decay) {
  const double progress = static_cast<double>(step - begin) / static_cast<double>(decay - begin);
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double LearningRateAt(const OptimizerConfig& config, uint64_t step) {
  const double peak = config.learning_rate();
  const double floor = config.min_learning_rate();
  const uint64_t warmup = config.warmup_steps();
  const uint64_t decay = config.decay_steps();
  if (step < warmup) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  }
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
      return std::max(
          floor, peak * std::sqrt(static_cast<double>(warmup + 1) / static_cast<double>(step + 1)));
    case OptimizerConfig::STABLE_DECAY: {
      if (step >= decay) return floor;
      const uint64_t begin = std::max(warmup, decay - decay / 5);
      if (step < begin) return peak;
      return floor + (peak - floor) * LineLeft(step, begin, decay);
    }
    default:
      TUG_CHECK(false) << "schedule " << config.schedule();
      return 0;
  }
}

}  // namespace tug
