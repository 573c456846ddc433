// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SHARD_H_
#define TUG_SERVER_SHARD_SHARD_H_

// State machine for the segments of one lane, without I/O: messages and ticks in; messages, notices
// and snapshots out (ShardSinks). lane.h runs it on a thread with a transport, lab/simulate/ in
// virtual time. Its parts, each building on the ones above:
//
//   OwnSegments     segments that the lane owns: clocks, sums, weights, optimizer state
//   PullService     answers pulls: waiting pulls, queued answers, the host's cache
//   ShardCopies     replicas of these segments at other lanes, and of other lanes' segments here
//   PushHandler     makes versions of pushes: SummedPushes (BSP, BACKUP), AppliedPushes (SSP, ASP)
//
// The shard first fences each message: another job -> dropped; another timeline or view -> kRefused
// with the current ones (to workers, and to pulls). Norms are accepted from any view of this
// placement. It then passes the message to its part, and lets all parts do what has become
// possible.
//
// Replicas (sync.replicas; placement changes): an update is sent to a segment's replicas and
// applied here once all in-sync ones have it, so commits and answers wait for them.
//
// A shard lives for one placement (View.placement). The next shard inherits its state (InheritFrom)
// without open sums and pushes; workers resend what was not committed.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "blocks/segment_table.h"
#include "server/replication/copy_store.h"
#include "server/segments/held_segment.h"
#include "server/shard/own_segments.h"
#include "server/shard/pull_service.h"
#include "server/shard/push_handler.h"
#include "server/shard/shard_activity.h"
#include "server/shard/shard_context.h"
#include "server/shard/shard_copies.h"
#include "server/shard/shard_counters.h"
#include "server/shard/shard_options.h"
#include "server/sums/lane_reduction.h"
#include "server/sync/live_set.h"
#include "transport/transport.h"

namespace tug {

// Not thread-safe: owned by one lane.
class Shard {
 public:
  // REQUIRES: `table` outlives the shard.
  Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks);

  // Owned segments.
  const std::vector<uint32_t>& segments() const { return own_.ids(); }
  // Owned and replicated segments, ascending.
  const std::vector<uint32_t>& held() const { return held_; }
  // State of a held segment, to be set to the start version before the first message, except after
  // InheritFrom.
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);  // empty if the optimizer keeps none
  std::span<float> v(uint32_t segment);
  // Whether segments have a clock per virtual worker: every push is an update (SSP, ASP).
  bool own_clocks() const { return own_.own_clocks(); }
  // Sets version and clocks from a checkpoint (SegmentSnapshot::clocks). Without it: all pushes
  // before the start version are applied. REQUIRES: own_clocks(); the version and a clock for each
  // virtual worker.
  void SetClocks(uint32_t segment, std::span<const uint64_t> clocks);

  // Starts a new placement within a timeline, instead of filling in weights. `before`: the lane's
  // shard of the previous placement, unusable afterwards; null: the lane has no state, and the
  // owners fill its replicas. Exchanges norms and replica versions with other lanes, so connect to
  // them first. Errors: FAILED_PRECONDITION (the lane was assigned a segment of which it has no
  // replica, or an inconsistent one; sync.policy BACKUP): the lane must fail.
  absl::Status InheritFrom(Shard* before, absl::Time now);

  // Releases the payload before it sends kCommitted.
  void OnMessage(Message message, absl::Time now);
  // Resends requests for missing norms and replica versions; releases the credit of lost answers.
  void OnTick(absl::Time now);
  // From the coordinator: final version of the job, which gets a snapshot regardless of the
  // interval. Ignored under SSP and ASP: see SetFinalClocks.
  void SetFinalVersion(uint64_t version);
  // From the coordinator: by virtual worker, the end of its clocks. Once a segment has all pushes
  // before them, it takes the snapshot of step `version`. Ignored under BSP and BACKUP.
  void SetFinalClocks(std::span<const uint64_t> clocks, uint64_t version, absl::Time now);
  // Enters `view` of the same timeline, which fences from now on; sums then wait for `live` virtual
  // workers. Sums and versions stay; waiting pulls and deferred pushes are dropped, and workers
  // send them again. With the current view: changes `live` only. Until a view's assignment of
  // virtual workers is known, all are live, so that no clock closes without one that has just
  // joined.
  void SetView(uint32_t view, const LiveSet& live, absl::Time now);
  // By virtual worker, the first clock that some segment lacks. Pushes in sums but not yet in a
  // version do not count, since a change of placement drops them.
  std::vector<uint64_t> Clocks() const { return own_.Clocks(); }
  // Whether all replicas of own segments are in sync. Once true it stays true.
  bool CopiesInSync() const { return copies_.in_sync(); }
  // Whether all pushes of live virtual workers before SetFinalClocks are applied; false without it.
  bool finished() const;
  // Replaces ShardOptions::pull_credit_bytes from now on. No other state of a lane depends on how
  // workers partition blocks.
  void SetPullCredit(uint64_t pull_credit_bytes, absl::Time now);
  // Takes snapshots of the start version; call before the first message.
  void SnapshotStart();

  // Null unless lanes reduce sums. OnMessage passes it its messages; all else (OnTick, Work,
  // ReadyToWait) is up to the lane.
  LaneReduction* reduction() { return pushes_->reduction(); }

  uint64_t version(uint32_t segment) const { return own_.state(segment).version; }
  // State of an owned or replicated segment, valid until its next change. None: no state yet.
  std::optional<HeldSegment> Held(uint32_t segment) const;
  // Version of a replica; kNoVersion if it has no state yet.
  uint64_t copy_version(uint32_t segment) const { return copies_.store().version(segment); }
  const ShardCounters& counters() const { return context_.counters; }
  // Bytes of answers to pulls: sent and not acknowledged; not sent for lack of credit.
  uint64_t outstanding_answer_bytes() const { return pulls_.outstanding_bytes(); }
  uint64_t waiting_answer_bytes() const { return pulls_.waiting_bytes(); }
  // Linear in the owned segments.
  ShardActivity activity() const { return pushes_->activity(); }
  // Memory of sums, spare buffers included. At most 4 bytes per parameter + parking_bytes, plus,
  // while exempt pushes arrive, (log2(virtual workers) + 2) partitions.
  uint64_t held_bytes() const { return own_.pool().total_bytes(); }
  // Peak of held_bytes() plus the buffers of the reduction among lanes.
  uint64_t peak_held_bytes() const;
  // WeightCache::peak_held_bytes.
  uint64_t peak_cached_bytes() const { return pulls_.peak_cached_bytes(); }

 private:
  bool Fenced(const Message& message);
  bool IsFromPast(const WireHeader& header) const;
  void Dispatch(Message message);
  // Lets all parts do what has become possible. Call last in every entry point.
  void Settle();
  void EnterView(uint32_t view);
  void SetLive(const LiveSet& live);
  absl::Status InheritSegments(Shard* before);

  ShardContext context_;
  const std::vector<uint32_t> held_;
  OwnSegments own_;
  PullService pulls_;
  ShardCopies copies_;
  const std::unique_ptr<PushHandler> pushes_;
  bool start_snapshot_ = false;  // SnapshotStart was called
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SHARD_H_
