#ifndef TUG_SERVER_OWN_SEGMENTS_H_
#define TUG_SERVER_OWN_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "optimizer/optimizer.h"
#include "server/copy_payload.h"
#include "server/held_segment.h"
#include "server/segment_state.h"
#include "server/shard_context.h"
#include "server/sum_tree.h"
#include "server/weights_store.h"

namespace tug {

// The segments that a lane owns: their clocks, sums, weights and optimizer state. Makes versions of
// them, and snapshots; when, its users decide. Not thread-safe: owned by one lane.
class OwnSegments {
 public:
  // `own_clocks`: every virtual worker has a clock of its own at each segment, since its pushes are
  // updates by themselves; else pushes are summed. REQUIRES: `context` outlives it.
  OwnSegments(ShardContext& context, bool own_clocks);

  const std::vector<uint32_t>& ids() const { return ids_; }
  bool has(uint32_t segment) const { return states_[segment] != nullptr; }
  // Whether they are all of the range that a header names, which may exist or not.
  bool HasRange(const WireHeader& header) const;
  SegmentState& state(uint32_t segment) { return *states_[segment]; }
  const SegmentState& state(uint32_t segment) const { return *states_[segment]; }
  const SegmentStates& states() const { return states_; }
  // Reads only the state that the policy needs: with many small segments, the rest is a cache miss.
  SegmentClocks ClocksOf(uint32_t segment) const;
  // Of segments [first, first + count).
  uint64_t OldestVersion(uint32_t first, uint32_t count) const;
  uint64_t NewestVersion(uint32_t first, uint32_t count) const;
  // By virtual worker, the first clock that some segment lacks: of pushes that are in sums and not
  // in a version nothing is said, since a change of placement drops them.
  std::vector<uint64_t> Clocks() const;
  const WeightsStore& weights() const { return weights_; }
  WeightsStore& weights() { return weights_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  const BufferPool& pool() const { return pool_; }
  bool own_clocks() const { return own_clocks_; }
  // That each segment begins with: of a job that starts at ShardOptions::start_version.
  uint64_t start_version() const;

  // A segment's version and clocks, as SegmentSnapshot::clocks has them.
  void SetClocks(uint32_t segment, std::span<const uint64_t> clocks);
  // The start version is filled in; may be called again.
  void Start();
  bool started() const { return started_; }
  // In place of both: what the lane has of each of ids(), in that order, from `before` or from
  // copies; null: there is nothing before. False if segments of it do not fit together.
  bool TakeUp(std::span<const HeldSegment> held, OwnSegments* before);
  HeldSegment Held(uint32_t segment) const;

  // Makes version + 1; `virtual_worker`, `clock`: whose push does, for traces.
  void MakeVersion(uint32_t segment, const SegmentUpdate& update, uint32_t virtual_worker,
                   uint64_t clock);
  // Of the state as it is, as that of a step of the job.
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

#endif  // TUG_SERVER_OWN_SEGMENTS_H_
