// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/gradients.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "compression/codecs/frames.h"
#include "config/push_plan.h"
#include "model/job_model.h"
#include "model/transformer/create_model.h"

namespace tug {
namespace {

// Rounds values as a bf16 pull does.
void RoundToBf16(std::span<float> values) {
  std::vector<kernels::Bf16> rounded(values.size());
  const auto n = static_cast<int64_t>(values.size());
  kernels::Bf16FromFloat(values.data(), rounded.data(), n);
  kernels::FloatFromBf16(rounded.data(), values.data(), n);
}

bool PullsBf16(const JobConfig& config) { return config.comm().pull_format() == CommConfig::BF16; }

}  // namespace

absl::StatusOr<std::unique_ptr<Gradients>> Gradients::Create(const JobConfig& config,
                                                             const SegmentTable& table,
                                                             const Sampler& sampler,
                                                             ThreadPool& pool) {
  std::unique_ptr<Gradients> gradients(new Gradients(config, table, sampler));
  ASSIGN_OR_RETURN(gradients->model_, CreateModel(ModelOptionsOf(config), pool));
  for (uint32_t block = 0; block < table.num_blocks(); ++block) {
    gradients->pulled_.emplace_back(table.block_elements(block));
    gradients->rounded_.emplace_back(PushPlanOf(config).binds_bf16 ? table.block_elements(block)
                                                                   : 0);
    gradients->gradient_.emplace_back(table.block_elements(block));
  }
  gradients->codecs_.emplace(config.comm().push_codec(), BlockNames(gradients->blocks()));
  return gradients;
}

PushedGradient Gradients::Compute(uint32_t virtual_worker, uint64_t clock,
                                  std::span<const std::span<const float>> weights) {
  const uint32_t blocks = table_.num_blocks();
  for (uint32_t block = 0; block < blocks; ++block) {
    std::copy(weights[block].begin(), weights[block].end(), pulled_[block].begin());
    BindPulled(block);
    model_->BindGradient(static_cast<int>(block), gradient_[block]);
  }
  const uint32_t micro_batches = sampler_.share() / config_.train().micro_batch();
  uint64_t targets = 0;
  for (uint32_t m = 0; m < micro_batches; ++m) targets += Pass(virtual_worker, clock, m).targets;
  for (uint32_t block = 0; block < blocks; ++block) clip_.Add(block, gradient_[block]);
  for (uint32_t block = 0; block < blocks; ++block) {
    clip_.Apply(block, targets, gradient_[block]);
  }
  PushedGradient pushed{.blocks = gradient_, .token_count = targets};
  for (uint32_t block = 0; block < blocks; ++block) {
    Decode(virtual_worker, clock, block, pushed.blocks[block]);
  }
  return pushed;
}

void Gradients::Decode(uint32_t virtual_worker, uint64_t clock, uint32_t block,
                       std::span<float> pushed) {
  for (uint32_t index = 0; index < table_.segments_in_block(block); ++index) {
    const Segment& segment = table_.segment(table_.id(block, index));
    const SegmentCodec* const codec = codecs_->Of(segment, clock);
    if (codec == nullptr) continue;
    const std::span<float> elements = pushed.subspan(segment.begin, segment.elements());
    frame_.resize(std::max(frame_.size(), MaxFrameBytes(codec, elements.size())));
    const CodecKey key = KeyOf(config_.seed(), segment, virtual_worker, clock);
    std::span<const std::byte> bytes(
        frame_.data(), WriteFrame(codecs_->id(), codec, key, elements, {}, frame_, scratch_));
    const std::optional<Frame> frame = TakeFrame(elements.size(), bytes);
    TUG_CHECK(frame.has_value());
    if (!DecodeFrame(*frame, DecodeTo::kStore, elements)) {  // not finite: lanes skip the update
      std::fill(elements.begin(), elements.end(), std::numeric_limits<float>::quiet_NaN());
    }
  }
}

void Gradients::BindPulled(uint32_t block) {
  std::vector<float>& pulled = pulled_[block];
  if (!rounded_[block].empty()) {
    kernels::Bf16FromFloat(pulled.data(), rounded_[block].data(),
                           static_cast<int64_t>(pulled.size()));
    return model_->BindWeights(static_cast<int>(block), {.bf16 = rounded_[block]});
  }
  if (PullsBf16(config_)) RoundToBf16(pulled);
  model_->BindWeights(static_cast<int>(block), {.fp32 = pulled});
}

LossSums Gradients::Pass(uint32_t virtual_worker, uint64_t clock, uint32_t micro_batch) {
  const uint32_t samples = config_.train().micro_batch();
  const uint32_t first = micro_batch * samples;
  sampler_.Fill(clock, virtual_worker, first, samples, batch_);
  MicroBatch batch = MicroBatchOf(batch_);
  batch.training = true;
  batch.accumulate = micro_batch > 0;
  batch.dropout = {config_.seed(), static_cast<uint32_t>(clock),
                   virtual_worker * sampler_.share() + first};
  model_->Start(batch);
  const int blocks = model_->num_blocks();
  for (int block = 0; block < blocks; ++block) model_->Forward(block);
  model_->Backward(blocks - 1);
  const LossSums sums = model_->losses();
  for (int block = blocks - 2; block >= 0; --block) model_->Backward(block);
  return sums;
}

}  // namespace tug
