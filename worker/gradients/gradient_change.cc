// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/gradient_change.h"

namespace tug {

GradientChange::GradientChange(const JobConfig& config, const SegmentTable& table,
                               uint32_t virtual_workers)
    : local_(config.sync().local_steps()), clip_(config.optimizer(), table.num_blocks()) {
  if (local_ > 1) local_steps_.emplace(config, table, virtual_workers);
}

void GradientChange::OnGradient(const Compute& compute, uint64_t tokens,
                                const std::function<Block(uint32_t block)>& at) {
  clip_.Add(compute.block, at(compute.block).gradient);
  if (!clip_.global()) return Settle(compute, tokens, compute.block, at(compute.block));
  if (compute.block > 0) return;
  for (uint32_t block = clip_.blocks(); block-- > 0;) Settle(compute, tokens, block, at(block));
}

void GradientChange::Settle(const Compute& compute, uint64_t tokens, uint32_t block,
                            const Block& at) {
  if (!local_steps_.has_value()) {
    const bool finite = clip_.Apply(block, tokens, at.gradient);
    if (block == 0) rows_suffice_ = finite;
    return;
  }
  const std::optional<float> factor = clip_.Factor(block, tokens);
  LocalSteps::Step step{.clock = compute.clock, .local_step = compute.local_step};
  if (factor.has_value()) step.gradient_scale = *factor / static_cast<float>(tokens);
  local_steps_->Update(compute.virtual_worker, block, step, at.gradient, at.weights);
  if (compute.local_step + 1 < local_) return;
  local_steps_->Difference(compute.virtual_worker, block, at.weights, at.gradient);
}

std::span<const float> GradientChange::LocalWeights(const Compute& compute) const {
  if (compute.local_step == 0) return {};
  return local_steps_->Weights(compute.virtual_worker, compute.block);
}

void GradientChange::Carry(const std::vector<std::optional<uint32_t>>& before) {
  if (local_steps_.has_value()) local_steps_->Carry(before);
}

}  // namespace tug
