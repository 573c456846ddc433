// SPDX-License-Identifier: Apache-2.0
// The second half of a clock: from complete sums to the next version.
#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/sum.h"
#include "server/shard/summed_pushes.h"

namespace tug {

void SummedPushes::OnLocalSum(uint32_t segment) {
  if (!reduction_.has_value()) return OnSummed(segment);
  SegmentState& state = own_.state(segment);
  const SumFacts facts{state.tokens, state.sum.first_not_finite()};
  state.sum.Replace(reduction_->Offer(segment, state.sum.sum(), facts, context_.now));
  admission_.Changed(segment);
}

void SummedPushes::OnReduced(const LaneReduction::Reduced& reduced) {
  SegmentState& state = own_.state(reduced.segment);
  state.tokens = reduced.facts.tokens;
  state.sum.SetNotFinite(reduced.facts.bad_virtual_worker);
  OnSummed(reduced.segment);
  AskForDeferred();
}

void SummedPushes::OnSummed(uint32_t segment) {
  if (!norms_.has_value()) return CloseAlone(segment);
  SegmentState& state = own_.state(segment);
  const std::span<const float> sum = state.sum.sum();
  state.summed_norm = {
      kernels::SumOfSquares(sum.data(), static_cast<int64_t>(sum.size())) * NormScale(state.tokens),
      state.sum.first_not_finite(), 0};
  const NormExchange::Complete scope = norms_->Add(segment, state.version, state.summed_norm);
  if (scope.has_value()) CloseScope(*scope);
}

void SummedPushes::CloseAlone(uint32_t segment) {
  const SegmentState& state = own_.state(segment);
  const std::span<const float> sum = state.sum.sum();
  const uint32_t bad_virtual_worker = state.sum.first_not_finite();
  const bool finite = bad_virtual_worker == SumTree::kNone &&
                      // The sum is what SumTree has checked.
                      ((context_.options.virtual_workers == 1 && !reduction_.has_value()) ||
                       kernels::AllFinite(sum.data(), static_cast<int64_t>(sum.size())));
  if (finite) return Close(segment, GradientScale(0, state.tokens));
  Skip(state.version, context_.table.segment(segment).block, bad_virtual_worker);
  Close(segment, std::nullopt);
}

void SummedPushes::OnNorms(const Message& message) {
  if (!norms_.has_value()) return PushHandler::OnNorms(message);
  const NormExchange::Complete scope = norms_->OnNorms(message);
  if (scope.has_value()) CloseScope(*scope);
}

void SummedPushes::OnNormsWanted(const WireHeader& header) {
  if (!norms_.has_value()) return PushHandler::OnNormsWanted(header);
  norms_->OnNormsWanted(header);
}

void SummedPushes::CloseScope(uint32_t scope) {
  const NormExchange::Closed closed = norms_->Close(scope);
  const NormVerdict& verdict = closed.verdict;
  if (!verdict.finite) Skip(closed.clock, verdict.bad_block, verdict.bad_virtual_worker);
  for (const uint32_t id : closed.segments) {
    const SegmentState& state = own_.state(id);
    if (state.version != closed.clock) continue;  // it had closed before this lane inherited it
    Close(id, verdict.finite ? std::optional(GradientScale(verdict.sum_of_squares, state.tokens))
                             : std::nullopt);
  }
  for (const uint32_t id : closed.segments) {
    const SegmentState& state = own_.state(id);
    if (state.version == closed.clock + 1 && state.sum.complete()) OnSummed(id);
  }
}

// If all sums of a clock contain the same pushes, norms are those of the sums, and the division by
// their tokens comes last. Otherwise each sum is divided first.
bool SummedPushes::NormsAreOfMeans() const {
  return context_.policy->spare() > 0 || context_.options.sums_of_some;
}

double SummedPushes::NormScale(uint64_t tokens) const {
  if (!NormsAreOfMeans()) return 1.0;
  const double mean = 1.0 / static_cast<double>(tokens);
  return mean * mean;
}

float SummedPushes::GradientScale(double sum_of_squares, uint64_t tokens) const {
  const double mean = 1.0 / static_cast<double>(tokens);
  if (!norms_.has_value()) return static_cast<float>(mean);
  const double norm = std::sqrt(sum_of_squares) * (NormsAreOfMeans() ? 1.0 : mean);
  return static_cast<float>(mean *
                            std::min(1.0, context_.options.optimizer.clip_norm() / (norm + 1e-6)));
}

void SummedPushes::Skip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker) const {
  SkippedUpdate skipped{
      .clock = clock, .block = block, .bad_virtual_worker = bad_virtual_worker, .clip = clip_};
  if (bad_virtual_worker == NormEntry::kAllFinite && reduction_.has_value() &&
      context_.options.reduction->collective.format() == CollectiveConfig::FP16) {
    skipped.remedy =
        "set collective.format=BF16: sums over tokens exceed 65504, the maximum of FP16";
  }
  NoticeSkip(skipped);
}

void SummedPushes::Close(uint32_t segment, std::optional<float> scale) {
  own_.state(segment).scale = scale;
  if (copies_.replicates()) return copies_.Offer(segment);
  uint32_t unused = 0;
  ApplyOffered(segment, NextUpdate(segment, unused), 0);
}

SegmentUpdate SummedPushes::NextUpdate(uint32_t segment, uint32_t&) {
  const SegmentState& state = own_.state(segment);
  SegmentUpdate update;
  update.norm = state.summed_norm;
  if (!state.scale.has_value()) return update;
  update.step = {.t = state.version,
                 .position = static_cast<double>(state.version),
                 .weight_decay = context_.table.segment(segment).weight_decay,
                 .gradient_scale = *state.scale};
  update.gradient = state.sum.sum();
  return update;
}

void SummedPushes::ApplyOffered(uint32_t segment, const SegmentUpdate& update, uint32_t) {
  SegmentState& state = own_.state(segment);
  own_.MakeVersion(segment, update, 0, state.version);
  state.tokens = 0;
  ++context_.counters.updates;
  ++context_.counters.staleness[0];
  if (state.applied.has_value()) {
    for (uint32_t vw = 0; vw < context_.options.virtual_workers; ++vw) {
      if (state.sum.Covers(vw, 1)) state.applied->Note(vw, state.version - 1);
    }
  }
  state.sum.Clear();
  admission_.Changed(segment);
  MaybeSnapshot(segment);
  open_pushes_.Close(segment,
                     [&](const PushKey& key) { context_.SendCommitted(key, state.version); });
  pulls_.LookAgain(segment);
}

}  // namespace tug
