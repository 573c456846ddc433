// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_APPLIED_PUSHES_H_
#define TUG_SERVER_SHARD_APPLIED_PUSHES_H_

// Pushes that are updates by themselves (sync.policy SSP, ASP). Life of a push in the shard's view:
//
//   1. Order: each segment tracks the next clock of every virtual worker (vector_clock.h). An
//      earlier push is a repeat: kCommitted. A later one is early: kDeferred, then kPushWanted in
//      its turn (early_pushes.h). So each push is applied once, in its virtual worker's order.
//   2. Update each segment at once. Staleness = updates since the weights version that the push
//      names (kAnyWeightsVersion: 0); it scales the step (staleness.h). The optimizer makes the
//      next version. A gradient that is not finite, before or after delay compensation, makes a
//      version with unchanged weights. Workers have already clipped it.
//   3. kCommitted; then pulls waiting for this clock are answered with the newest weights.
//
// Pushes to a replicated segment with an update in flight queue up (queued_pushes.h); staleness is
// counted when the update is sent to the replicas.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/pushes/early_pushes.h"
#include "server/pushes/open_pushes.h"
#include "server/replication/queued_pushes.h"
#include "server/shard/push_handler.h"

namespace tug {

class AppliedPushes final : public PushHandler {
 public:
  explicit AppliedPushes(const ShardParts& parts);

  void OnPush(Message message) override;
  void OnPushAsked(const Message& message) override;
  void AskForDeferred() override;
  void OnTick() override;
  void EnterView() override { early_.Clear(); }
  void SetLive() override;
  void SetFinal() override;
  bool RecoverState(std::span<const HeldSegment>) override { return true; }

  SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) override;
  void NameUpdate(uint32_t segment, WireHeader& header) const override;
  void OnUpdateWritten(uint32_t segment) override { own_.state(segment).sum.Clear(); }
  void ApplyOffered(uint32_t segment, const SegmentUpdate& update, uint32_t record_flags) override;
  void AfterOffered(uint32_t segment) override;

  ShardActivity activity() const override;

 private:
  enum class Fate { kFresh, kRepeat, kEarly, kImpossible };

  // Classifies a push; sets open_segments_.
  Fate Examine(const WireHeader& push);
  bool IsEarly(const PushKey& key) const;
  bool IsApplied(const PushKey& key) const;  // by all of its segments
  // Whether the push is beyond the last clock of its virtual worker.
  bool IsBeyondEnd(const WireHeader& push) const;
  void Defer(const PushKey& key);
  void Apply(bool exact);
  void SendCommitted(const WireHeader& push);
  // Makes the push's part the segment's sum.
  void AddAlone(uint32_t segment, const PushPayload& push);
  // Version of the segment's weights that the gradient was computed with.
  uint64_t WeightsVersion(uint32_t segment, const WireHeader& push) const;
  // Builds the update to version + 1 from the segment's sum; valid until the next call. Sets
  // OrderRecord bits in `record_flags`.
  SegmentUpdate UpdateOf(uint32_t segment, const WireHeader& push, uint32_t& record_flags);
  // `exact`: the version that the push names is that of each of its segments.
  void ApplyTo(uint32_t segment, const WireHeader& push, bool exact, const SegmentUpdate& update,
               uint32_t record_flags);
  void Record(uint32_t segment, const WireHeader& push, uint64_t weights_version, uint32_t flags);
  // Answers pulls that may have waited for this push.
  void AnswerAfter(uint32_t segment, uint32_t virtual_worker);
  bool IsFinal(const SegmentState& state) const;
  void MaybeSnapshot(uint32_t segment);

  // For lanes whose segments have replicas.
  bool AnswerIfQueued(const PushKey& key);
  void Queue(bool exact);

  EarlyPushes early_;
  std::optional<QueuedPushes> queued_;
  std::vector<float> compensated_;  // gradient of one segment
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_APPLIED_PUSHES_H_
