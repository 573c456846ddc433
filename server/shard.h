#ifndef TUG_SERVER_SHARD_H_
#define TUG_SERVER_SHARD_H_

// The state of one lane's segments, as a machine without I/O: messages and ticks in, messages,
// notices and snapshots out (through sinks). The lane's thread (lane.h) binds it to a transport,
// simulate/ to virtual time. Its parts, the deepest first:
//
//   OwnSegments     the segments that the lane owns: clocks, sums, weights, optimizer state
//   PullService     answers pulls: those that wait, those whose turn has come, the host's cache
//   ShardCopies     copies at other lanes, and of other lanes' segments here
//   PushHandler     makes versions of pushes: SummedPushes (BSP, BACKUP), AppliedPushes (SSP, ASP)
//
// The shard fences (a message of another job is dropped, one of an older view or timeline is
// kRefused with the current ones), hands each message to its part, and then lets all parts do what
// has become possible.
//
// Where other lanes copy a segment (sync.replicas; servers that come and go), its update is sent to
// them first, and made here once they all have it: commits and answers come later by that.
//
// Life of a shard: a placement (View.placement). With another one there is another shard, which
// takes over what the one before had (TakeFrom); sums and pushes that are open are dropped, and
// workers send again what was not committed.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "exchange/segment_table.h"
#include "server/copy_store.h"
#include "server/held_segment.h"
#include "server/lane_reduction.h"
#include "server/live_set.h"
#include "server/own_segments.h"
#include "server/pull_service.h"
#include "server/push_handler.h"
#include "server/shard_activity.h"
#include "server/shard_context.h"
#include "server/shard_copies.h"
#include "server/shard_counters.h"
#include "server/shard_options.h"
#include "transport/transport.h"

namespace tug {

// Not thread-safe: owned by one lane.
class Shard {
 public:
  // REQUIRES: `table` outlives the shard.
  Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks);

  // Those that it owns.
  const std::vector<uint32_t>& segments() const { return own_.ids(); }
  // Those that it owns or copies, ascending.
  const std::vector<uint32_t>& held() const { return held_; }
  // To fill in the start version of all of these, before the first message. (A shard that takes
  // over has it from the one before.)
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);  // empty if there is none
  std::span<float> v(uint32_t segment);
  // Whether virtual workers have clocks of their own: every push is an update.
  bool own_clocks() const { return own_.own_clocks(); }
  // Of a checkpoint, SegmentSnapshot::clocks. Without: all pushes before the start version are in.
  // REQUIRES: every push is an update; version, and a clock for each virtual worker.
  void SetClocks(uint32_t segment, std::span<const uint64_t> clocks);

  // In place of filling in: a new placement in the middle of a timeline. `before`: the lane's shard
  // of the placement before, of no use afterwards; null: the lane has nothing yet, its copies are
  // filled by their owners. Exchanges norms and words of copies with other lanes, so they should be
  // connected. Errors: FAILED_PRECONDITION (a segment that the lane is to own and does not have, or
  // not as its neighbours; sync.policy BACKUP): nothing can be done but to fail.
  absl::Status TakeFrom(Shard* before, absl::Time now);

  // A payload is let go of before kCommitted says that it is no longer needed.
  void OnMessage(Message message, absl::Time now);
  // Asks again for norms that do not come; takes back the credit of lost answers.
  void OnTick(absl::Time now);
  // From the coordinator: the version at which the job ends, to be snapshot whatever the interval.
  // Where every push is an update, SetFinalClocks says so instead.
  void SetFinalVersion(uint64_t version);
  // From the coordinator: by virtual worker, pushes with clock < this come and no others. The
  // snapshot of a segment that has them all is that of step `version`.
  void SetFinalClocks(std::span<const uint64_t> clocks, uint64_t version, absl::Time now);
  // A new view of the same timeline: from now on it fences, and `live` virtual workers are waited
  // for. What was pushed stays; workers ask again for what they want. Of the view that it is in:
  // others are waited for. As long as it is not known who carries what in a view, all live: no
  // clock closes then without one who has just joined.
  void SetView(uint32_t view, const LiveSet& live, absl::Time now);
  // By virtual worker, the first clock that some segment lacks: of pushes that are in sums and not
  // in a version nothing is said, since a change of placement drops them.
  std::vector<uint64_t> Clocks() const { return own_.Clocks(); }
  // Whether all copies of its segments have what it has, and go on to. Once true it stays true.
  bool CopiesInSync() const { return copies_.in_sync(); }
  // Whether no push can come any more, by SetFinalClocks.
  bool finished() const;
  // In place of ShardOptions::pull_credit_bytes, from now on. Nothing else of a lane depends on how
  // workers cut blocks: each partition is taken as it comes.
  void SetPullCredit(uint64_t pull_credit_bytes, absl::Time now);
  // Takes a snapshot of the state as it is, once filled in, before the first message.
  void SnapshotStart();

  // Null unless lanes reduce sums. Its owner drives it (OnTick, Work, ReadyToWait) outside of
  // OnMessage, which hands it its messages.
  LaneReduction* reduction() { return pushes_->reduction(); }

  uint64_t version(uint32_t segment) const { return own_.state(segment).version; }
  // What it has of a segment that it owns, or has a copy of; until its next change. None if
  // nothing.
  std::optional<HeldSegment> Held(uint32_t segment) const;
  // Of a copy; kNoVersion if it has nothing yet.
  uint64_t copy_version(uint32_t segment) const { return copies_.store().version(segment); }
  const ShardCounters& counters() const { return context_.counters; }
  // Of weights that workers asked for: sent and not known to be there; not sent for want of credit.
  uint64_t outstanding_answer_bytes() const { return pulls_.outstanding_bytes(); }
  uint64_t waiting_answer_bytes() const { return pulls_.waiting_bytes(); }
  // Looks at every segment that it owns.
  ShardActivity activity() const { return pushes_->activity(); }
  // Memory of sums, spare buffers included. At most 4 bytes a parameter + parking_bytes, or, while
  // exempt pushes come in, + (log2(virtual workers) + 2) partitions.
  uint64_t held_bytes() const { return own_.pool().total_bytes(); }
  // The most there was, with what is reduced among lanes.
  uint64_t most_held_bytes() const;
  // WeightCache::most_held_bytes.
  uint64_t most_cached_bytes() const { return pulls_.most_cached_bytes(); }

 private:
  bool Fenced(const Message& message);
  bool IsFromPast(const WireHeader& header) const;
  void Dispatch(Message message);
  // What has become possible. Last in whatever happens to the shard.
  void Settle();
  void EnterView(uint32_t view);
  void SetLive(const LiveSet& live);
  absl::Status TakeSegments(Shard* before);

  ShardContext context_;
  const std::vector<uint32_t> held_;
  OwnSegments own_;
  PullService pulls_;
  ShardCopies copies_;
  const std::unique_ptr<PushHandler> pushes_;
  bool start_snapshot_ = false;  // SnapshotStart
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_H_
