// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_OWN_SEGMENTS_H_
#define TUG_SERVER_SHARD_OWN_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "optimizer/optimizer.h"
#include "server/replication/copy_payload.h"
#include "server/segments/held_segment.h"
#include "server/segments/segment_state.h"
#include "server/segments/weights_store.h"
#include "server/shard/shard_context.h"
#include "server/sums/sum_tree.h"

namespace tug {

// Segments that a lane owns: their clocks, sums, weights and optimizer state. Makes versions and
// snapshots when its callers ask. Not thread-safe: owned by one lane.
class OwnSegments {
 public:
  // `own_clocks`: SSP and ASP: every push is an update, and each segment has a clock per virtual
  // worker. Otherwise pushes are summed. REQUIRES: `context` outlives it.
  OwnSegments(ShardContext& context, bool own_clocks);

  const std::vector<uint32_t>& ids() const { return ids_; }
  bool has(uint32_t segment) const { return states_[segment] != nullptr; }
  // Whether the lane owns the whole range of the header, which may not exist.
  bool HasRange(const WireHeader& header) const;
  SegmentState& state(uint32_t segment) { return *states_[segment]; }
  const SegmentState& state(uint32_t segment) const { return *states_[segment]; }
  const SegmentStates& states() const { return states_; }
  // Reads only the state that the policy needs: with many small segments, the rest would be a cache
  // miss.
  SegmentClocks ClocksOf(uint32_t segment) const;
  // Lowest and highest version of segments [first, first + count).
  uint64_t OldestVersion(uint32_t first, uint32_t count) const;
  uint64_t NewestVersion(uint32_t first, uint32_t count) const;
  // By virtual worker, the first clock that some segment lacks. Pushes in sums but not yet in a
  // version do not count, since a change of placement drops them.
  std::vector<uint64_t> Clocks() const;
  const WeightsStore& weights() const { return weights_; }
  WeightsStore& weights() { return weights_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const BufferPool& pool() const { return pool_; }
  bool own_clocks() const { return own_clocks_; }
  // Version of each segment when the job starts at ShardOptions::start_version.
  uint64_t start_version() const;

  // Sets a segment's version and clocks, in the form of SegmentSnapshot::clocks.
  void SetClocks(uint32_t segment, std::span<const uint64_t> clocks);
  // Call once the start version is filled in; repeats have no effect.
  void Start();
  bool started() const { return started_; }
  // Replaces SetClocks and Start: inherits `held`, the state of each of ids() in that order, from
  // `before` or from replicas. `before` null: there is no previous shard. False if the segments are
  // inconsistent.
  bool RecoverState(std::span<const HeldSegment> held, OwnSegments* before);
  HeldSegment Held(uint32_t segment) const;

  // Makes version + 1. `virtual_worker`, `clock`: of the push that does, for traces.
  void MakeVersion(uint32_t segment, const SegmentUpdate& update, uint32_t virtual_worker,
                   uint64_t clock);
  // Takes a snapshot of the current state for a step of the job.
  void Snapshot(uint32_t segment, uint64_t step);

 private:
  void Optimize(const UpdateStep& step, std::span<const float> gradient,
                const WeightsStore::Update& update);

  ShardContext& context_;
  const bool own_clocks_;
  const bool keeps_applied_;  // SegmentState::applied
  const std::vector<uint32_t> ids_;
  const std::unique_ptr<const Optimizer> optimizer_;
  BufferPool pool_;
  SegmentStates states_;
  WeightsStore weights_;
  std::vector<uint64_t> snapshot_clocks_;
  bool started_ = false;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_OWN_SEGMENTS_H_
