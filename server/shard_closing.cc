// The second half of a clock: from complete sums to the next version.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/elapsed.h"
#include "kernels/sum.h"
#include "server/shard.h"

namespace tug {

void Shard::OnLocalSum(uint32_t segment) {
  if (!reduction_.has_value()) return OnSummed(segment);
  SegmentState& state = *states_[segment];
  const SumFacts facts{state.tokens, state.sum.first_not_finite()};
  state.sum.Replace(reduction_->Offer(segment, state.sum.sum(), facts, now_));
  admission_.Changed(segment);
}

void Shard::OnReduced(const LaneReduction::Reduced& reduced) {
  SegmentState& state = *states_[reduced.segment];
  state.tokens = reduced.facts.tokens;
  state.sum.SetNotFinite(reduced.facts.bad_virtual_worker);
  OnSummed(reduced.segment);
  AskForDeferred();
}

void Shard::OnSummed(uint32_t segment) {
  if (!ledger_.has_value()) return CloseAlone(segment);
  SegmentState& state = *states_[segment];
  const std::span<const float> sum = state.sum.sum();
  const NormEntry entry{
      kernels::SumOfSquares(sum.data(), static_cast<int64_t>(sum.size())) * NormScale(state.tokens),
      state.sum.first_not_finite(), 0};
  const uint32_t scope = ledger_->ScopeOfBlock(table_.segment(segment).block);
  // It was further than others of its scope when this lane took them up: they come first.
  if (state.version > ledger_->clock(scope)) return;
  state.summed_norm = entry;
  if (!ledger_->AddOwn(segment, entry)) return;
  norms_asked_ = now_;
  for (uint32_t lane : ledger_->OtherLanes(scope)) SendNorms(scope, ledger_->clock(scope), lane);
  CloseScopeIfComplete(scope);
}

void Shard::CloseAlone(uint32_t segment) {
  const SegmentState& state = *states_[segment];
  const std::span<const float> sum = state.sum.sum();
  const uint32_t bad_virtual_worker = state.sum.first_not_finite();
  const bool finite = bad_virtual_worker == SumTree::kNone &&
                      // The sum is what was checked.
                      ((options_.virtual_workers == 1 && !reduction_.has_value()) ||
                       kernels::AllFinite(sum.data(), static_cast<int64_t>(sum.size())));
  if (finite) return Close(segment, GradientScale(0, state.tokens));
  NoticeSkip(state.version, table_.segment(segment).block, bad_virtual_worker);
  Close(segment, std::nullopt);
}

void Shard::SendNorms(uint32_t scope, uint64_t clock, uint32_t to_lane) {
  const std::optional<std::vector<NormEntry>> entries = ledger_->OwnEntries(scope, clock);
  if (!entries.has_value()) return;
  auto owned = std::make_shared<const std::vector<NormEntry>>(*entries);
  WireHeader header = Header(MessageKind::kNorms);
  header.block = scope;
  header.clock = clock;
  sinks_.send({LanePeer(to_lane), header, Lease(owned, std::as_bytes(std::span(*owned)))});
}

void Shard::OnNorms(const Message& message) {
  const WireHeader& header = message.header;
  const uint32_t from_lane = header.sender - LanePeer(0);
  if ((header.sender & kWorkerBit) != 0 || !ledger_.has_value() ||
      !ledger_->AddRemote(header.block, from_lane, header.clock, message.payload.bytes())) {
    Malformed(header, "has norms that do not fit");
    return;
  }
  CloseScopeIfComplete(header.block);
}

void Shard::OnNormsWanted(const WireHeader& header) {
  if ((header.sender & kWorkerBit) != 0 || !ledger_.has_value() ||
      !ledger_->IsScope(header.block)) {
    Malformed(header, "asks for norms that there are not");
    return;
  }
  SendNorms(header.block, header.clock, header.sender - LanePeer(0));
}

void Shard::CloseScopeIfComplete(uint32_t scope) {
  if (!ledger_->complete(scope)) return;
  const std::vector<uint32_t> segments = ledger_->OwnSegments(scope);
  const NormVerdict verdict = ledger_->Fold(scope);
  if (!verdict.finite) {
    NoticeSkip(ledger_->clock(scope), verdict.bad_block, verdict.bad_virtual_worker);
  }
  const uint64_t clock = ledger_->clock(scope);
  ledger_->Advance(scope);
  for (uint32_t id : segments) {
    if (states_[id]->version != clock) continue;  // it was closed before this lane took it up
    Close(id, verdict.finite
                  ? std::optional(GradientScale(verdict.sum_of_squares, states_[id]->tokens))
                  : std::nullopt);
  }
  for (uint32_t id : segments) {
    if (states_[id]->version == clock + 1 && states_[id]->sum.complete()) OnSummed(id);
  }
}

uint32_t Shard::Scopes() const {
  return ledger_->IsScope(NormLedger::kAllBlocks) ? 1 : table_.num_blocks();
}

// Lanes come to a new view one after the other, and what they sent each other meanwhile was refused
// on one side: the later one of two sends again what the other may lack, and asks for the rest.
void Shard::ExchangeNormsAgain() {
  for (uint32_t s = 0; s < Scopes(); ++s) {
    const uint32_t scope = ledger_->ScopeOfBlock(s);
    const uint64_t clock = ledger_->clock(scope);
    for (const uint32_t lane : ledger_->OtherLanes(scope)) {
      if (clock > options_.start_version) SendNorms(scope, clock - 1, lane);
      SendNorms(scope, clock, lane);
    }
    // Before its own sums are complete, too: who has closed this clock says nothing of it by
    // itself.
    AskForNorms(scope);
  }
  norms_asked_ = now_;
}

void Shard::AskForNorms() {
  if (!ledger_.has_value() || now_ - norms_asked_ < options_.resend_after) return;
  norms_asked_ = now_;
  for (uint32_t s = 0; s < Scopes(); ++s) {
    const uint32_t scope = ledger_->ScopeOfBlock(s);
    if (ledger_->Waiting(scope)) AskForNorms(scope);
  }
}

void Shard::AskForNorms(uint32_t scope) {
  if (ledger_->OwnSegments(scope).empty()) return;
  for (const uint32_t lane : ledger_->MissingLanes(scope)) {
    WireHeader header = Header(MessageKind::kNormsWanted);
    header.block = scope;
    header.clock = ledger_->clock(scope);
    sinks_.send({LanePeer(lane), header, Lease()});
  }
}

// Where all sums of a clock are of the same pushes, norms are of the sums, and the division by
// their tokens comes last. Where they are not, each sum is divided first.
bool Shard::NormsAreOfMeans() const { return policy_->spare() > 0 || options_.sums_of_some; }

double Shard::NormScale(uint64_t tokens) const {
  if (!NormsAreOfMeans()) return 1.0;
  const double mean = 1.0 / static_cast<double>(tokens);
  return mean * mean;
}

float Shard::GradientScale(double sum_of_squares, uint64_t tokens) const {
  const double mean = 1.0 / static_cast<double>(tokens);
  if (!ledger_.has_value()) return static_cast<float>(mean);
  const double norm = std::sqrt(sum_of_squares) * (NormsAreOfMeans() ? 1.0 : mean);
  return static_cast<float>(mean * std::min(1.0, options_.optimizer.clip_norm() / (norm + 1e-6)));
}

const char* Shard::RemedyOfSkip(uint32_t bad_virtual_worker) const {
  const bool only_the_sum = bad_virtual_worker == NormEntry::kAllFinite;
  if (only_the_sum && options_.reduction.has_value() &&
      options_.reduction->collective.format() == CollectiveConfig::FP16) {
    return "FP16 ends at 65504, which sums over tokens exceed: set collective.format=BF16";
  }
  return "a lower learning rate or a smaller clip_norm helps";
}

void Shard::NoticeSkip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker) {
  // A worker that clips by itself makes all of what it skips not finite.
  const auto clip = update_per_push_ ? options_.optimizer.clip() : clip_;
  const bool whole = update_per_push_ && clip == OptimizerConfig::GLOBAL;
  const std::string what = clip == OptimizerConfig::GLOBAL      ? "the whole update"
                           : clip == OptimizerConfig::PER_BLOCK ? "the update of that block"
                                                                : "the update of that segment";
  const std::string where = bad_virtual_worker == NormEntry::kAllFinite
                                ? std::string("summed over all virtual workers")
                                : absl::StrCat("from virtual worker ", bad_virtual_worker);
  sinks_.notice(
      {absl::StrCat("nonfinite/", clock, "/",
                    clip == OptimizerConfig::GLOBAL ? "" : options_.block_names[block],
                    update_per_push_ ? absl::StrCat("/", bad_virtual_worker) : ""),
       absl::StrCat("step ", clock + 1, ": the gradient ",
                    whole ? "" : absl::StrCat("of block ", options_.block_names[block], " "), where,
                    " is not finite; ", what, " is skipped (", RemedyOfSkip(bad_virtual_worker),
                    " if this repeats)")});
}

void Shard::Close(uint32_t segment, std::optional<float> scale) {
  states_[segment]->scale = scale;
  if (replication_.has_value()) return replication_->Offer(segment, now_);
  ApplySum(segment, UpdateBySum(segment));
}

SegmentUpdate Shard::UpdateBySum(uint32_t segment) const {
  const SegmentState& state = *states_[segment];
  SegmentUpdate update;
  update.norm = state.summed_norm;
  if (!state.scale.has_value()) return update;
  update.step = {.t = state.version,
                 .position = static_cast<double>(state.version),
                 .weight_decay = table_.segment(segment).weight_decay,
                 .gradient_scale = *state.scale};
  update.gradient = state.sum.sum();
  return update;
}

void Shard::MakeVersion(uint32_t segment, const SegmentUpdate& made, uint32_t virtual_worker,
                        uint64_t clock) {
  SegmentState& state = *states_[segment];
  const Segment& place = table_.segment(segment);
  const TraceSpan span(options_.trace, {.kind = TraceKind::kOptimizer,
                                        .block = place.block,
                                        .first_segment = place.index,
                                        .segment_count = 1,
                                        .virtual_worker = virtual_worker,
                                        .clock = clock,
                                        .bytes = place.bytes()});
  const ElapsedSeconds elapsed(options_.work_time, counters_.optimizer_seconds);
  const WeightsStore::Update update = weights_.BeginUpdate(segment, state.version);
  if (made.skipped()) {
    weights_.CopyWeights(update);
  } else {
    Optimize(made.step, made.gradient, update);
  }
  state.norm = made.norm;
  ++state.version;
}

void Shard::ApplySum(uint32_t segment, const SegmentUpdate& update) {
  SegmentState& state = *states_[segment];
  MakeVersion(segment, update, 0, state.version);
  state.tokens = 0;
  ++counters_.updates;
  ++counters_.staleness[0];
  if (state.applied.has_value()) {
    for (uint32_t vw = 0; vw < options_.virtual_workers; ++vw) {
      if (state.sum.Covers(vw, 1)) state.applied->Note(vw, state.version - 1);
    }
  }
  state.sum.Clear();
  admission_.Changed(segment);
  MaybeSnapshot(segment);
  open_pushes_.Close(segment, [&](const PushKey& key) {
    ReplyToPush(MessageKind::kCommitted, key, state.version);
  });
  waiting_pulls_.TakeEach(segment, [this](WaitingPull pull) { LookAgain(std::move(pull)); });
}

void Shard::Optimize(const UpdateStep& step, std::span<const float> gradient,
                     const WeightsStore::Update& update) {
  if (options_.leave_out_update) return;  // whatever is there is the new version
  optimizer_->Update(step, {.gradient = gradient,
                            .weights_in = update.weights_in,
                            .weights_out = update.weights_out,
                            .m = update.m,
                            .v = update.v,
                            .weights_out_bf16 = update.bf16_out});
  weights_.EndUpdate(update);
}

}  // namespace tug
