// SPDX-License-Identifier: Apache-2.0
#include "server/shard/own_segments.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/elapsed.h"
#include "blocks/view_lanes.h"
#include "blocks/weights_payload.h"
#include "config/sync_mode.h"
#include "server/segments/memory.h"

namespace tug {
namespace {

std::vector<uint32_t> OwnedSegments(const ShardOptions& options) {
  std::vector<uint32_t> owned;
  for (uint32_t id = 0; id < options.lane_of_segment.size(); ++id) {
    if (options.lane_of_segment[id] == options.lane) owned.push_back(id);
  }
  return owned;
}

// Upper bound on the memory of sums, except exempt pushes (push_admission.h); the pool keeps no
// more.
uint64_t SumBytes(const ShardContext& context, std::span<const uint32_t> owned) {
  uint64_t bytes = context.options.parking_bytes;
  for (uint32_t id : owned) bytes += context.table.segment(id).bytes();
  return bytes;
}

// The bytes that memory.h predicts for copied answers. A worker runs at least one virtual worker.
uint64_t CopiedAnswers(const ShardContext& context, std::span<const uint32_t> owned) {
  const ShardOptions& options = context.options;
  if (owned.empty()) return 0;
  uint64_t bytes = 0;
  for (const uint32_t id : owned) {
    bytes += CopiedAnswerBytes(options.pull_format, options.pull_density,
                               context.table.segment(id).elements());
  }
  return std::min(options.pull_credit_bytes / OwningLanes(options), bytes) *
         options.virtual_workers;
}

WeightsStore::Options WeightsOptions(const ShardContext& context, std::span<const uint32_t> owned,
                                     const Optimizer& optimizer, bool one_copy) {
  const ShardOptions& options = context.options;
  WeightsStore::Options weights{.start_version = options.start_version,
                                .pull_codec = WeightsCodecOf(options.pull_format),
                                .one_copy = one_copy,
                                .shadow = ShadowOptionsOf(options),
                                .keeps_m = optimizer.keeps_m(),
                                .keeps_v = optimizer.keeps_v(),
                                .new_buffer = options.new_buffer,
                                .memory = options.memory};
  if (one_copy) {
    weights.keep_bytes = options.parking_bytes;  // no sums are parked then
  } else {
    weights.keep_bytes = std::max(weights.keep_bytes, CopiedAnswers(context, owned));
  }
  return weights;
}

}  // namespace

OwnSegments::OwnSegments(ShardContext& context, bool own_clocks)
    : context_(context),
      own_clocks_(own_clocks),
      keeps_applied_(SyncModeOf(context.options.sync.policy()).skips_steps),
      ids_(OwnedSegments(context.options)),
      optimizer_(MakeLaneOptimizer(context.options.optimizer, context.options.sync)),
      pool_(SumBytes(context, ids_)),
      states_(context.table.size()),
      weights_(context.table, ids_, WeightsOptions(context, ids_, *optimizer_, own_clocks)) {
  const uint32_t virtual_workers = context.options.virtual_workers;
  for (const uint32_t id : ids_) {
    states_[id] = std::make_unique<SegmentState>(context.options.start_version,
                                                 own_clocks ? 1 : virtual_workers,
                                                 context.table.segment(id).elements(), pool_);
    if (own_clocks) {
      states_[id]->version = start_version();
      states_[id]->next.emplace(context.live, context.options.start_version);
    }
    if (keeps_applied_) states_[id]->applied.emplace(virtual_workers);
  }
}

uint64_t OwnSegments::start_version() const {
  return context_.options.start_version * (own_clocks_ ? context_.options.virtual_workers : 1);
}

bool OwnSegments::HasRange(const WireHeader& header) const {
  if (!context_.RangeExists(header)) return false;
  const uint32_t first = context_.FirstId(header);
  for (uint32_t id = first; id < first + header.segment_count; ++id) {
    if (!has(id)) return false;
  }
  return true;
}

SegmentClocks OwnSegments::ClocksOf(uint32_t segment) const {
  const SegmentState& one = state(segment);
  return {.version = one.version,
          .next = own_clocks_ ? &*one.next : nullptr,
          .applied = keeps_applied_ ? &*one.applied : nullptr};
}

uint64_t OwnSegments::OldestVersion(uint32_t first, uint32_t count) const {
  uint64_t oldest = state(first).version;
  for (uint32_t id = first + 1; id < first + count; ++id) {
    oldest = std::min(oldest, state(id).version);
  }
  return oldest;
}

uint64_t OwnSegments::NewestVersion(uint32_t first, uint32_t count) const {
  uint64_t newest = state(first).version;
  for (uint32_t id = first + 1; id < first + count; ++id) {
    newest = std::max(newest, state(id).version);
  }
  return newest;
}

std::vector<uint64_t> OwnSegments::Clocks() const {
  std::vector<uint64_t> clocks(context_.options.virtual_workers, VectorClock::kNever);
  for (const uint32_t id : ids_) {
    for (uint32_t vw = 0; vw < clocks.size(); ++vw) {
      clocks[vw] = std::min(clocks[vw], own_clocks_ ? state(id).next->next(vw) : state(id).version);
    }
  }
  return clocks;
}

void OwnSegments::SetClocks(uint32_t segment, std::span<const uint64_t> clocks) {
  state(segment).version = clocks[0];
  state(segment).next->Set(clocks.subspan(1));
}

void OwnSegments::Start() {
  if (!std::exchange(started_, true)) weights_.Start();
}

bool OwnSegments::RecoverState(std::span<const HeldSegment> held, OwnSegments* before) {
  started_ = true;
  for (size_t i = 0; i < ids_.size(); ++i) {
    SegmentState& one = state(ids_[i]);
    one.version = held[i].version;
    one.norm = held[i].norm;
    if (own_clocks_) one.next->Set(held[i].clocks);
  }
  return weights_.RecoverState(held, before == nullptr ? nullptr : &before->weights_);
}

HeldSegment OwnSegments::Held(uint32_t segment) const {
  HeldSegment held = weights_.Held(segment, state(segment).version);
  if (own_clocks_) held.clocks = state(segment).next->all();
  held.norm = state(segment).norm;
  return held;
}

void OwnSegments::MakeVersion(uint32_t segment, const SegmentUpdate& made, uint32_t virtual_worker,
                              uint64_t clock) {
  SegmentState& one = state(segment);
  const Segment& place = context_.table.segment(segment);
  const ShardOptions& options = context_.options;
  const TraceSpan span(options.trace, {.kind = TraceKind::kOptimizer,
                                       .block = place.block,
                                       .first_segment = place.index,
                                       .segment_count = 1,
                                       .virtual_worker = virtual_worker,
                                       .clock = clock,
                                       .bytes = place.bytes()});
  const ElapsedSeconds elapsed(options.work_time, context_.counters.optimizer_seconds);
  const WeightsStore::Update update = weights_.BeginUpdate(segment, one.version);
  if (made.skipped()) {
    weights_.CopyWeights(update);
  } else {
    Optimize(made.step, made.gradient, update);
  }
  one.norm = made.norm;
  ++one.version;
}

void OwnSegments::Optimize(const UpdateStep& step, std::span<const float> gradient,
                           const WeightsStore::Update& update) {
  if (context_.options.leave_out_update) return;  // the memory's contents become the new version
  optimizer_->Update(step, {.gradient = gradient,
                            .weights_in = update.weights_in,
                            .weights_out = update.weights_out,
                            .m = update.m,
                            .v = update.v,
                            .weights_out_bf16 = update.bf16_out});
  weights_.EndUpdate(update);
}

void OwnSegments::Snapshot(uint32_t segment, uint64_t step) {
  SegmentState& one = state(segment);
  one.snapshot_version = step;
  snapshot_clocks_.clear();
  if (own_clocks_) {
    snapshot_clocks_.push_back(one.version);
    snapshot_clocks_.insert(snapshot_clocks_.end(), one.next->all().begin(), one.next->all().end());
  }
  context_.sinks.snapshot({segment, step, weights_.LeaseWeights(segment, one.version),
                           weights_.m(segment), weights_.v(segment), snapshot_clocks_});
}

}  // namespace tug
