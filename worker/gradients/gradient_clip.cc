// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/gradient_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/sum.h"

namespace tug {

void GradientClip::Add(uint32_t block, std::span<const float> gradient) {
  sums_[block] = kernels::SumOfSquares(gradient.data(), static_cast<int64_t>(gradient.size()));
}

std::optional<float> GradientClip::Factor(uint32_t block, uint64_t tokens) const {
  const double sum = global() ? std::accumulate(sums_.begin(), sums_.end(), 0.0) : sums_[block];
  if (!std::isfinite(sum)) return std::nullopt;
  if (config_.clip() == OptimizerConfig::OFF) return 1.0f;
  const double norm = std::sqrt(sum) / static_cast<double>(tokens);
  return static_cast<float>(std::min(1.0, config_.clip_norm() / (norm + 1e-6)));
}

bool GradientClip::Apply(uint32_t block, uint64_t tokens, std::span<float> gradient) const {
  if (config_.clip() == OptimizerConfig::OFF) return true;
  const std::optional<float> factor = Factor(block, tokens);
  if (!factor.has_value()) {
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<float>::quiet_NaN());
  } else if (*factor != 1.0f) {
    for (float& element : gradient) element *= *factor;
  }
  return factor.has_value();
}

}  // namespace tug
