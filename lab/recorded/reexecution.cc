// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/reexecution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "kernels/sum.h"
#include "server/pushes/push_step.h"

namespace tug {

Reexecution::Reexecution(const JobConfig& config, const SegmentTable& table, const RecordedRun& run,
                         std::vector<std::vector<float>> start, ComputeGradient compute)
    : config_(config),
      table_(table),
      run_(run),
      compute_(std::move(compute)),
      optimizer_(MakeLaneOptimizer(config.optimizer(), config.sync())),
      steps_(run.steps.size()) {
  TUG_CHECK_EQ(start.size(), size_t{table.size()});
  TUG_CHECK_EQ(run.updates.size(), size_t{table.size()});
  for (uint32_t s = 0; s < table.size(); ++s) {
    const uint64_t n = table.segment(s).elements();
    segments_.push_back({.versions = WeightVersions(0, std::move(start[s])),
                         .m = std::vector<float>(optimizer_->keeps_m() ? n : 0),
                         .v = std::vector<float>(optimizer_->keeps_v() ? n : 0)});
  }
  for (uint32_t b = 0; b < table.num_blocks(); ++b) weights_.emplace_back(table.block_elements(b));
  const bool compensates = config.sync().delay_compensation() > 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].unapplied = table.size();
    for (uint32_t s = 0; s < table.size(); ++s) {
      const uint64_t version = run.steps[i].weights_version[s];
      if (version == kAnyVersion) continue;
      SegmentState& segment = segments_[s];
      segment.versions.Need(version);                   // to be computed
      if (compensates) segment.versions.Need(version);  // and to be applied
      if (version <= segment.versions.version()) continue;
      ++steps_[i].missing;
      segment.waiting[version].push_back(i);
    }
    if (steps_[i].missing == 0) ready_.push_back(i);
  }
}

absl::Status Reexecution::Run(const std::function<void(size_t updates)>& progress) {
  while (!ready_.empty()) {
    const size_t step = ready_.back();
    ready_.pop_back();
    Compute(step);
    RETURN_IF_ERROR(ApplyAll());
    progress(updates_);
  }
  const size_t all = run_.update_count();
  if (updates_ == all) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the recorded order is inconsistent: after ", updates_, " of ", all,
                   " updates, every remaining gradient depends on weights not yet computed. The "
                   "logs are damaged or mixed; the run cannot be replayed"));
}

void Reexecution::Compute(size_t step) {
  const RecordedStep& recorded = run_.steps[step];
  std::vector<std::span<const float>> views;
  for (const std::vector<float>& block : weights_) views.push_back(block);
  for (uint32_t s = 0; s < table_.size(); ++s) {
    const Segment& place = table_.segment(s);
    WeightVersions& versions = segments_[s].versions;
    const uint64_t version = recorded.weights_version[s];
    const std::span<const float> weights =
        version == kAnyVersion ? versions.newest() : versions.Of(version);
    std::copy(weights.begin(), weights.end(), weights_[place.block].begin() + place.begin);
    if (version != kAnyVersion) versions.Release(version);
  }
  steps_[step].gradient =
      std::make_unique<PushedGradient>(compute_(recorded.virtual_worker, recorded.clock, views));
}

absl::Status Reexecution::ApplyAll() {
  for (uint32_t s = 0; s < table_.size(); ++s) {
    SegmentState& segment = segments_[s];
    const std::vector<RecordedUpdate>& updates = run_.updates[s];
    while (segment.applied < updates.size()) {
      const RecordedUpdate& update = updates[segment.applied];
      if (steps_[update.step].gradient == nullptr) break;
      RETURN_IF_ERROR(Apply(s, update));
      ++segment.applied;
      ++updates_;
      if (--steps_[update.step].unapplied == 0) steps_[update.step].gradient.reset();
      const auto waiting = segment.waiting.find(segment.versions.version());
      if (waiting == segment.waiting.end()) continue;
      for (const size_t step : waiting->second) {
        if (--steps_[step].missing == 0) ready_.push_back(step);
      }
      segment.waiting.erase(waiting);
    }
  }
  return absl::OkStatus();
}

// Same rules as AppliedPushes::UpdateOf (server/shard/applied_pushes.cc).
absl::Status Reexecution::Apply(uint32_t segment, const RecordedUpdate& update) {
  const Segment& place = table_.segment(segment);
  const PushedGradient& pushed = *steps_[update.step].gradient;
  std::span<const float> gradient =
      std::span<const float>(pushed.blocks[place.block]).subspan(place.begin, place.elements());
  WeightVersions& versions = segments_[segment].versions;
  const uint64_t version = versions.version();
  const uint64_t staleness = version - update.weights_version;
  UpdateStep step = StepOfPush(config_.sync(), run_.virtual_workers,
                               {.version = version,
                                .staleness = staleness,
                                .token_count = pushed.token_count,
                                .weight_decay = place.weight_decay});
  if (WantsCompensation(config_.sync(), staleness) &&
      (update.flags & OrderRecord::kNotCompensated) == 0) {
    gradient = CompensateDelay(config_.sync(),
                               {.gradient = gradient,
                                .of = versions.Of(update.weights_version),
                                .weights = versions.newest()},
                               step, compensated_);
  }
  const bool skipped = (update.flags & OrderRecord::kSkipped) != 0;
  if (kernels::AllFinite(gradient.data(), static_cast<int64_t>(gradient.size())) == skipped) {
    const RecordedStep& recorded = run_.steps[update.step];
    return absl::DataLossError(absl::StrCat(
        "the gradient of virtual worker ", recorded.virtual_worker, " at step ", recorded.clock + 1,
        skipped ? " was not finite when it was recorded, but is now"
                : " was finite when it was recorded, but is not now"));
  }
  versions.Advance();
  if (!skipped) Optimize(segment, step, gradient);
  const bool untouched = (update.flags & OrderRecord::kUntouched) != 0;
  if (config_.sync().delay_compensation() > 0 && !untouched) {
    versions.Release(update.weights_version);
  }
  return absl::OkStatus();
}

void Reexecution::Optimize(uint32_t segment, const UpdateStep& step,
                           std::span<const float> gradient) {
  SegmentState& state = segments_[segment];
  const std::span<float> weights = state.versions.newest();
  optimizer_->Update(step, {.gradient = gradient,
                            .weights_in = weights,
                            .weights_out = weights,
                            .m = state.m,
                            .v = state.v});
}

}  // namespace tug
