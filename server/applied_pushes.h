#ifndef TUG_SERVER_APPLIED_PUSHES_H_
#define TUG_SERVER_APPLIED_PUSHES_H_

// Pushes that are updates by themselves (sync.policy SSP, ASP). Life of one that is of the shard's
// view:
//
//   1. By virtual worker, every segment knows the clock of the next push that it lacks
//      (vector_clock.h). An earlier one is a repeat: kCommitted. A later one is early: kDeferred,
//      and kPushWanted once it is its turn (early_pushes.h). So none is applied twice, or out of
//      its virtual worker's order.
//   2. At once, for each of its segments: its staleness is how many updates there were since the
//      version of the weights that it names (kWhateverVersion: none); the optimizer makes version
//      + 1 with the step that staleness leaves (staleness.h); a gradient that is not finite, or is
//      not once it is compensated, makes the version and changes no weight. Workers have clipped
//      it.
//   3. kCommitted; then pulls that waited for this clock are answered, with the newest weights.
//
// Where other lanes copy a segment, pushes that meet one under way wait for it (queued_pushes.h);
// the staleness of an update is counted when it is sent to the copies.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/early_pushes.h"
#include "server/open_pushes.h"
#include "server/push_handler.h"
#include "server/queued_pushes.h"

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
  bool TakeUp(std::span<const HeldSegment>) override { return true; }

  SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) override;
  void NameUpdate(uint32_t segment, WireHeader& header) const override;
  void OnUpdateWritten(uint32_t segment) override { own_.state(segment).sum.Clear(); }
  void ApplyOffered(uint32_t segment, const SegmentUpdate& update, uint32_t record_flags) override;
  void AfterOffered(uint32_t segment) override;

  ShardActivity activity() const override;

 private:
  enum class Fate { kFresh, kRepeat, kEarly, kImpossible };

  // Fills in open_segments_.
  Fate Examine(const WireHeader& push);
  bool IsEarly(const PushKey& key) const;
  bool IsApplied(const PushKey& key) const;  // by all of its segments
  // Whether it is after the last clock of its virtual worker.
  bool IsBeyondEnd(const WireHeader& push) const;
  void Defer(const PushKey& key);
  void Apply(bool exact);
  void SayCommitted(const WireHeader& push);
  // Its part of the push goes into the segment's sum, which is it alone.
  void AddAlone(uint32_t segment, const PushPayload& push);
  // The version of the segment that the push is a gradient of.
  uint64_t WeightsVersion(uint32_t segment, const WireHeader& push) const;
  // What makes version + 1 of the gradient in the segment's sum. Valid until the next call.
  SegmentUpdate UpdateOf(uint32_t segment, const WireHeader& push, uint32_t& record_flags);
  // `exact`: the push names the version of each of its segments.
  void ApplyTo(uint32_t segment, const WireHeader& push, bool exact, const SegmentUpdate& update,
               uint32_t record_flags);
  void Record(uint32_t segment, const WireHeader& push, uint64_t weights_version, uint32_t flags);
  // Looks at the pulls that may have waited for this push.
  void AnswerAfter(uint32_t segment, uint32_t virtual_worker);
  bool IsFinal(const SegmentState& state) const;
  void MaybeSnapshot(uint32_t segment);

  // At a lane whose segments are copied elsewhere.
  bool AnswerIfQueued(const PushKey& key);
  void Queue(bool exact);

  EarlyPushes early_;
  std::optional<QueuedPushes> queued_;
  std::vector<float> compensated_;  // a segment's gradient
};

}  // namespace tug

#endif  // TUG_SERVER_APPLIED_PUSHES_H_
