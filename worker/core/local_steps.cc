// SPDX-License-Identifier: Apache-2.0
#include "worker/core/local_steps.h"

#include <algorithm>

#include "base/check.h"

namespace tug {
namespace {

std::span<float> Part(AlignedBuffer& buffer, const Segment& segment) {
  if (buffer.size_bytes() == 0) return {};
  return buffer.floats().subspan(segment.begin, segment.elements());
}

}  // namespace

LocalSteps::LocalSteps(const JobConfig& config, const SegmentTable& table, uint32_t virtual_workers)
    : table_(table),
      local_steps_(config.sync().local_steps()),
      optimizer_(MakeOptimizer(config.optimizer())) {
  for (uint32_t v = 0; v < virtual_workers; ++v) states_.push_back(NewState());
}

std::vector<LocalSteps::BlockState> LocalSteps::NewState() const {
  std::vector<BlockState> blocks;
  for (uint32_t block = 0; block < table_.num_blocks(); ++block) {
    const size_t size_bytes = table_.block_elements(block) * sizeof(float);
    BlockState& state = blocks.emplace_back();
    state.weights = AlignedBuffer(size_bytes);
    if (optimizer_->keeps_m()) state.m = AlignedBuffer(size_bytes);
    if (optimizer_->keeps_v()) state.v = AlignedBuffer(size_bytes);
  }
  return blocks;
}

void LocalSteps::Carry(const std::vector<std::optional<uint32_t>>& before) {
  std::vector<std::vector<BlockState>> states;
  for (const std::optional<uint32_t>& index : before) {
    states.push_back(index.has_value() ? std::move(states_[*index]) : NewState());
  }
  states_ = std::move(states);
}

std::span<const float> LocalSteps::Weights(uint32_t virtual_worker, uint32_t block) const {
  return states_[virtual_worker][block].weights.floats();
}

void LocalSteps::Update(uint32_t virtual_worker, uint32_t block, const Step& step,
                        std::span<const float> gradient, std::span<const float> start) {
  BlockState& state = states_[virtual_worker][block];
  const std::span<const float> from =
      step.local_step == 0 ? start : std::span<const float>(state.weights.floats());
  const uint64_t t = state.updates++;
  if (!step.gradient_scale.has_value()) {
    if (step.local_step == 0) std::copy(start.begin(), start.end(), state.weights.floats().begin());
    return;
  }
  UpdateStep update{.t = t,
                    .position = static_cast<double>(step.clock) +
                                static_cast<double>(step.local_step) / local_steps_,
                    .gradient_scale = *step.gradient_scale};
  for (uint32_t s = 0; s < table_.segments_in_block(block); ++s) {
    const Segment& segment = table_.segment(table_.id(block, s));
    update.weight_decay = segment.weight_decay;
    optimizer_->Update(update, {.gradient = gradient.subspan(segment.begin, segment.elements()),
                                .weights_in = from.subspan(segment.begin, segment.elements()),
                                .weights_out = Part(state.weights, segment),
                                .m = Part(state.m, segment),
                                .v = Part(state.v, segment)});
  }
}

void LocalSteps::Difference(uint32_t virtual_worker, uint32_t block, std::span<const float> start,
                            std::span<float> out) const {
  const std::span<const float> end = Weights(virtual_worker, block);
  TUG_CHECK(start.size() == end.size() && out.size() == end.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = start[i] - end[i];
}

}  // namespace tug
