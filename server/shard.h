#ifndef TUG_SERVER_SHARD_H_
#define TUG_SERVER_SHARD_H_

// The state of one lane's segments, as a machine without I/O: messages and ticks in, messages,
// notices and snapshots out (through sinks). The lane's thread (lane.h) binds it to a transport,
// simulate/ to virtual time.
//
// Life of a push where pushes are summed (sync.policy BSP, BACKUP):
//   1. Fence: other job -> dropped; older view or timeline -> kRefused with the current ones.
//   2. Identity (segment, virtual worker, clock): a repeat is acknowledged, not applied again.
//   3. Admission (push_admission.h): where its memory would exceed the bound -> kDeferred, and
//      kPushWanted when it can be taken. One that is announced, by its header alone, gets the one
//      or the other at once.
//   4. Every segment's part goes into its sum tree (sum_tree.h), where it arrived. Answer
//      kReceived: the sender's credit returns, and with senders_let_go it forgets the gradient.
//      (If the push closes its segments, 6. says so at once, alone.) kPushAsked is answered as a
//      repeat of the push.
//   5. The policy (sync_policy.h) closes a segment's clock: when all virtual workers are in, or all
//      but a few, whose pushes are answered kDropped. With clipping, lanes first agree on one scale
//      (norm_ledger.h). The optimizer makes version clock + 1 (weights_store.h); the previous one
//      stays readable until the next update, which comes only when every segment of this clock has
//      closed everywhere.
//   6. kCommitted to the senders; then waiting pulls are answered, from the weights in place: at
//      once where the worker shares the memory, else in the order of comm.scheduler under the
//      worker's credit (answer_queue.h).
//
// Life of a push that is an update (SSP, ASP): 1.; then
//   2. By virtual worker, every segment knows the clock of the next push that it lacks
//      (vector_clock.h). An earlier one is a repeat: kCommitted. A later one is early: kDeferred,
//      and kPushWanted once it is its turn (early_pushes.h). So none is applied twice, or out of
//      its virtual worker's order.
//   3. At once, for each of its segments: its staleness is how many updates there were since the
//      version of the weights that it names (kWhateverVersion: none); the optimizer makes version
//      + 1 with the step that staleness leaves (staleness.h); a gradient that is not finite, or is
//      not once it is compensated, makes the version and changes no weight. Workers have clipped
//      it.
//   4. kCommitted; then pulls that waited for this clock are answered, with the newest weights.
//
// With placement.host_weight_cache, pulls of segments that the lane keeps for its host
// (weight_cache.h) wait until their owner has answered, and are answered as those of its own.
//
// With `exchange: ALL_REDUCE` (ShardOptions::reduction) every lane has all segments, and 5. is of
// the virtual workers of the worker beside it: the sum is then reduced with those of the other
// lanes (lane_reduction.h), and what follows is of the reduced sum, the same on all of them.
//
// Where other lanes copy a segment (sync.replicas; servers that come and go), its update is sent to
// them first, and made here once they all have it (replication.h): what follows it above, commits
// and answers, comes later by that. Where every push is an update, pushes that meet one under way
// wait for it (queued_pushes.h); the staleness of an update is counted when it is sent.
//
// Life of a shard: a placement (View.placement). With another one there is another shard, which
// takes over what the one before had (TakeFrom); sums and pushes that are open are dropped, and
// workers send again what was not committed.
//
// With workers that take local steps (sync.local_steps) a push is how far weights have gone, its
// tokens are those who went, and the optimizer is sync.outer: nothing else differs.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/lease.h"
#include "base/time_source.h"
#include "base/trace.h"
#include "exchange/segment_table.h"
#include "optimizer/optimizer.h"
#include "server/answer_queue.h"
#include "server/copy_payload.h"
#include "server/copy_store.h"
#include "server/early_pushes.h"
#include "server/held_segment.h"
#include "server/lane_reduction.h"
#include "server/live_set.h"
#include "server/norm_ledger.h"
#include "server/open_pushes.h"
#include "server/order_log.h"
#include "server/push_admission.h"
#include "server/push_payload.h"
#include "server/queued_pushes.h"
#include "server/replication.h"
#include "server/segment_state.h"
#include "server/served_weights.h"
#include "server/shard_activity.h"
#include "server/shard_counters.h"
#include "server/shard_options.h"
#include "server/sync_policy.h"
#include "server/waiting_pulls.h"
#include "server/weight_cache.h"
#include "server/weights_store.h"
#include "transport/transport.h"

namespace tug {

// State of one segment at a version, readable during the call only, but for `weights`, which stays
// as it is while the lease lives.
struct SegmentSnapshot {
  uint32_t segment = 0;
  uint64_t version = 0;  // of the job: its step
  Lease weights;
  std::span<const float> m;  // empty where the optimizer keeps none; v too
  std::span<const float> v;
  // Where every push is an update: the segment's version, then by virtual worker the clock of the
  // next push that it lacks. Otherwise empty.
  std::span<const uint64_t> clocks;
};

// A line for people, each key once ("nonfinite/12").
struct ShardNotice {
  std::string key;
  std::string text;
};

struct ShardSinks {
  std::function<void(Outgoing)> send;
  std::function<void(const SegmentSnapshot&)> snapshot;
  std::function<void(ShardNotice)> notice;
  // Whether what is sent to this worker moves no bytes (Transport::SharesMemoryWith); none: never.
  std::function<bool(PeerId)> shares_memory = {};
  // With sync.record ORDER: an update has been made.
  std::function<void(const OrderRecord&)> record = {};
  // With a reduction: LaneReduction is to Work. On any thread.
  std::function<void()> wake = {};
};

// Not thread-safe: owned by one lane.
class Shard {
 public:
  // REQUIRES: `table` outlives the shard.
  Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks);

  // Those that it owns.
  const std::vector<uint32_t>& segments() const { return owned_; }
  // Those that it owns or copies, ascending.
  const std::vector<uint32_t>& held() const { return held_; }
  // To fill in the start version of all of these, before the first message. (A shard that takes
  // over has it from the one before.)
  std::span<float> weights(uint32_t segment);
  std::span<float> m(uint32_t segment);  // empty if there is none
  std::span<float> v(uint32_t segment);
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
  std::vector<uint64_t> Clocks() const;
  // Whether all copies of its segments have what it has, and go on to. Once true it stays true.
  bool CopiesInSync() const { return !replication_.has_value() || replication_->all_in_sync(); }
  // Whether no push can come any more, by SetFinalClocks.
  bool finished() const { return finals_ == owned_.size() && !final_clocks_.empty(); }
  // In place of ShardOptions::pull_credit_bytes, from now on. Nothing else of a lane depends on how
  // workers cut blocks: each partition is taken as it comes.
  void SetPullCredit(uint64_t pull_credit_bytes, absl::Time now);
  // Takes a snapshot of the state as it is, once filled in, before the first message.
  void SnapshotStart();

  // Null unless lanes reduce sums. Its owner drives it (OnTick, Work, ReadyToWait) outside of
  // OnMessage, which hands it its messages.
  LaneReduction* reduction() { return reduction_.has_value() ? &*reduction_ : nullptr; }

  uint64_t version(uint32_t segment) const { return states_[segment]->version; }
  // What it has of a segment that it owns, or has a copy of; until its next change. None if
  // nothing.
  std::optional<HeldSegment> Held(uint32_t segment) const;
  // Of a copy; CopyStore::kNothing if it has nothing yet.
  uint64_t copy_version(uint32_t segment) const { return copies_.version(segment); }
  const ShardCounters& counters() const { return counters_; }
  // Of weights that workers asked for: sent and not known to be there; not sent for want of credit.
  uint64_t outstanding_answer_bytes() const { return answers_.outstanding_bytes(); }
  uint64_t waiting_answer_bytes() const { return answers_.waiting_bytes(); }
  // Looks at every segment that it owns.
  ShardActivity activity() const;
  // Memory of sums, spare buffers included. At most 4 bytes a parameter + parking_bytes, or, while
  // exempt pushes come in, + (log2(virtual workers) + 2) partitions.
  uint64_t held_bytes() const { return pool_.total_bytes(); }
  // The most there was, with what is reduced among lanes.
  uint64_t most_held_bytes() const {
    return pool_.most_bytes() + (reduction_.has_value() ? reduction_->buffer_bytes() : 0);
  }
  // WeightCache::most_held_bytes.
  uint64_t most_cached_bytes() const { return cache_.has_value() ? cache_->most_held_bytes() : 0; }

 private:
  // What a push would add to this lane's sums.
  struct Fresh {
    uint32_t missing = 0;  // open segments that lack it
    uint32_t dropped = 0;  // segments whose clock has closed without it
    bool valid = true;     // its clock can have been reached
  };

  // An update of a segment with copies, which it is sent to (shard_replication.cc).
  struct UnderWay {
    Lease payload;       // of kUpdate; empty until it is sent
    uint32_t flags = 0;  // of its OrderRecord
  };

  ShardActivity ActivityOfSums() const;
  ShardActivity ActivityOfPulls() const;
  void EnterView(uint32_t view);
  void SetLive(const LiveSet& live);
  bool Fenced(const Message& message);
  bool IsFromPast(const WireHeader& header) const;
  // Counts a message that makes no sense here; the first one is told to people.
  void Malformed(const WireHeader& header, const char* why);
  // Checks block and range.
  bool RangeExists(const WireHeader& header) const;
  // The same, and ownership.
  bool RangeIsOwn(const WireHeader& header) const;
  uint32_t FirstId(const WireHeader& header) const;
  uint64_t RangeElements(const WireHeader& header) const;
  // Bounds the pushes, and the waiting pulls, of a block that a lane remembers.
  size_t MaxOpen(uint32_t block) const;
  SegmentClocks ClocksOf(const SegmentState& state) const;

  // Whether a push is of what this lane owns, by its header: its payload is looked at only once
  // the lane lacks it. So a repeat is answered whatever its payload.
  bool NamesOwnPush(const WireHeader& header) const;
  // False if what it is made of has changed since.
  bool ExpandPush();
  // Of pushes that are summed (shard_pushes.cc).
  void OnPush(Message message);
  // Fills in open_segments_.
  Fresh Examine(const WireHeader& push);
  // Whether nothing of the push is lacking, or can be taken: then it is answered.
  bool AnswerKnown(const PushKey& key, const Fresh& fresh);
  // Whether the lane lacks a push of which only the header has come; else it is answered.
  bool Lacks(const WireHeader& push);
  // kPush without its payload: kPushWanted, or kDeferred.
  void OnAnnounced(const WireHeader& header);
  // kPushAsked: as a repeat of the push, or kDropped where the lane lacks it.
  void OnPushAsked(const Message& message);
  // None of its segments is open at its clock.
  void AnswerClosed(const PushKey& key, const Fresh& fresh);
  bool AnswerIfClosed(const PushKey& key);
  void AddToSums(const PushKey& key);
  uint32_t LiveArrived(const SegmentState& state) const;
  void AskForDeferred();
  // Of pushes that are updates (shard_updates.cc).
  void OnUpdate(Message message);
  // Fills in open_segments_. None if the push is early.
  std::optional<Fresh> ExamineUpdate(const WireHeader& push);
  // Its part of the push goes into the segment's sum, which is it alone.
  void AddAlone(uint32_t segment, const PushPayload& push);
  // The version of the segment that the push is a gradient of.
  uint64_t WeightsVersion(uint32_t segment, const WireHeader& push) const;
  // What makes version + 1 of the gradient in the segment's sum. Valid until the next call.
  // `flags`: gets those of an OrderRecord.
  SegmentUpdate UpdateByPush(uint32_t segment, const WireHeader& push, uint32_t& flags);
  // `exact`: the push names the version of each of its segments.
  void ApplyPush(uint32_t segment, const WireHeader& push, bool exact, const SegmentUpdate& update,
                 uint32_t flags);
  // Looks at the pulls that may have waited for this push.
  void AnswerAfter(uint32_t segment, uint32_t virtual_worker);
  void AnswerAllWaiting();
  bool IsEarly(const PushKey& key) const;
  bool IsApplied(const PushKey& key) const;  // by all of its segments

  // Of segments with copies (shard_replication.cc).
  bool AnswerIfQueued(const PushKey& key);
  void Queue(bool exact);
  void DeferUpdate(const PushKey& key);
  void AfterQueued(uint32_t segment, const WireHeader& header);
  // Does what there is to be done for copies. Last in whatever happens to the shard.
  void Replicate();
  void SendRequest(const Replication::Request& request);
  Lease UpdatePayload(uint32_t segment);
  void ApplyAcknowledged(uint32_t segment);
  void OnCopyMessage(const Message& message);
  bool TakeForCopy(uint32_t segment, const Message& message);
  void SayCopied(uint32_t segment, uint64_t number);
  WireHeader SegmentHeader(MessageKind kind, uint32_t segment) const;
  // Of taking over (shard_takeover.cc).
  absl::Status TakeSegments(Shard* before);

  void OnPull(const Message& message);
  bool IsPull(const Message& message) const;
  bool MayPull(PeerId sender) const { return IsWorker(sender) || cache_.has_value(); }
  // Whether it begins with a segment of another lane. REQUIRES: it exists.
  bool IsElsewhere(const WireHeader& pull) const { return states_[FirstId(pull)] == nullptr; }
  bool MayWait(const WireHeader& pull) const;
  // The first segment that the policy does not serve to the pull yet; none if it can be answered.
  std::optional<uint32_t> NotReady(const WireHeader& pull) const;
  // What a pull is answered with, where it is ready: changes only to who holds what they follow on.
  Codec AnswerCodec(const WireHeader& pull) const;
  uint64_t AnswerBytes(const WaitingPull& pull) const;
  // Answers it, now or in its turn.
  void OnReady(WaitingPull pull);
  // Answers it, or lets it wait where it is not ready.
  void LookAgain(WaitingPull pull);
  // False if that version is not to be had any more. `number`: AnswerQueue::Turn, 0 for none.
  bool Answer(const WaitingPull& pull, uint64_t number);
  bool AnswerFromCache(const WireHeader& pull, uint64_t number);
  void SendWeights(const WireHeader& pull, Codec codec, uint64_t version, uint64_t number,
                   Lease weights);
  void OnWeightsReceived(const Message& message);
  // kWeights and kRefused, of what is asked for others.
  void OnAnswerToCache(const Message& message);
  // Pulls of a block that wait for what the cache no longer asks for: there is a later `version`.
  void RefuseGivenUp(uint32_t block, uint64_t version);
  // The answers whose turn has come.
  void SendAnswers(PeerId worker);
  void SendFreed();

  void OnNorms(const Message& message);
  void OnNormsWanted(const WireHeader& header);
  // Of the pushes that come here: reduced, or all that there are.
  void OnLocalSum(uint32_t segment);
  void OnReduced(const LaneReduction::Reduced& reduced);
  void OnSummed(uint32_t segment);
  void CloseAlone(uint32_t segment);
  void SendNorms(uint32_t scope, uint64_t clock, uint32_t to_lane);
  void CloseScopeIfComplete(uint32_t scope);
  uint32_t Scopes() const;
  void AskForNorms();
  void AskForNorms(uint32_t scope);
  void ExchangeNormsAgain();
  bool NormsAreOfMeans() const;
  // What multiplies a segment's sum of squares before lanes exchange it.
  double NormScale(uint64_t tokens) const;
  float GradientScale(double sum_of_squares, uint64_t tokens) const;
  // What to do about an update that was skipped.
  const char* RemedyOfSkip(uint32_t bad_virtual_worker) const;
  void NoticeSkip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker);
  // The sum is all that version + 1 is made of: `scale` = none keeps the weights.
  void Close(uint32_t segment, std::optional<float> scale);
  SegmentUpdate UpdateBySum(uint32_t segment) const;
  void ApplySum(uint32_t segment, const SegmentUpdate& update);
  // Makes version + 1.
  void MakeVersion(uint32_t segment, const SegmentUpdate& update, uint32_t virtual_worker,
                   uint64_t clock);
  void Optimize(const UpdateStep& step, std::span<const float> gradient,
                const WeightsStore::Update& update);
  void MaybeSnapshot(uint32_t segment);
  void Snapshot(uint32_t segment, uint64_t version);
  bool IsFinal(const SegmentState& state) const;

  // What a push or pull is in a trace.
  TraceEvent EventOf(TraceKind kind, const WireHeader& header) const;

  void Reply(MessageKind kind, const WireHeader& to, uint64_t version);
  void ReplyToPush(MessageKind kind, const PushKey& key, uint64_t version);
  WireHeader Header(MessageKind kind) const;

  const ShardOptions options_;
  const SegmentTable& table_;
  const ShardSinks sinks_;
  const bool update_per_push_;
  const OptimizerConfig::Clip clip_;  // by lanes
  const std::unique_ptr<const SyncPolicy> policy_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const std::vector<uint32_t> owned_;
  const std::vector<uint32_t> held_;
  uint32_t view_;
  LiveSet live_;
  BufferPool pool_;
  SegmentStates states_;
  WeightsStore weights_;
  PushAdmission admission_;
  OpenPushes open_pushes_;
  EarlyPushes early_;
  std::optional<ServedWeights> served_;  // where somebody asks what was served
  WaitingPulls waiting_pulls_;
  const uint64_t lanes_;  // that own segments
  AnswerQueue answers_;
  std::optional<WeightCache> cache_;
  std::optional<LaneReduction> reduction_;
  std::optional<NormLedger> ledger_;  // none with `clip: off`
  CopyStore copies_;                  // of other lanes' segments
  // None where nobody copies a segment of this lane; with what follows.
  std::optional<Replication> replication_;
  std::vector<UnderWay> under_way_;     // by segment
  std::optional<QueuedPushes> queued_;  // update per push
  SendBuffers copy_buffers_;            // for payloads of kUpdate and kCopy
  // The push in hand; here to be used again, as are its segments that are open, and that it
  // completes.
  PushPayload push_;
  std::vector<uint32_t> open_segments_;
  std::vector<uint32_t> summed_;
  std::vector<PushKey> wanted_;
  std::vector<PeerId> freed_;       // workers that have credit again; scratch
  std::vector<float> compensated_;  // a segment's gradient
  std::vector<uint64_t> snapshot_clocks_;
  bool started_ = false;
  bool start_snapshot_ = false;            // SnapshotStart
  absl::Time now_ = absl::InfinitePast();  // of the message or tick in hand
  absl::Time norms_asked_ = absl::InfinitePast();
  uint64_t final_version_ = 0;
  std::vector<uint64_t> final_clocks_;  // empty: not known
  size_t finals_ = 0;                   // segments that have all of them
  ShardCounters counters_;
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_H_
