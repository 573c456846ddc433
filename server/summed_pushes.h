#ifndef TUG_SERVER_SUMMED_PUSHES_H_
#define TUG_SERVER_SUMMED_PUSHES_H_

// Pushes that are summed (sync.policy BSP, BACKUP). Life of one that is of the shard's view:
//
//   1. Identity (segment, virtual worker, clock): a repeat is acknowledged, not applied again.
//   2. Admission (push_admission.h): where its memory would exceed the bound -> kDeferred, and
//      kPushWanted when it can be taken. One that is announced, by its header alone, gets the one
//      or the other at once.
//   3. Every segment's part goes into its sum tree (sum_tree.h), where it arrived. Answer
//      kReceived: the sender's credit returns, and with senders_let_go it forgets the gradient.
//      (If the push closes its segments, 5. says so at once, alone.) kPushAsked is answered as a
//      repeat of the push.
//   4. The policy (sync_policy.h) closes a segment's clock: when all virtual workers are in, or all
//      but a few, whose pushes are answered kDropped. With clipping, lanes first agree on one scale
//      (norm_exchange.h). The optimizer makes version clock + 1 (own_segments.h); the previous one
//      stays readable until the next update, which comes only when every segment of this clock has
//      closed everywhere.
//   5. kCommitted to the senders; then waiting pulls are answered (pull_service.h).
//
// With `exchange: ALL_REDUCE` (ShardOptions::reduction) every lane has all segments, and 4. is of
// the virtual workers of the worker beside it: the sum is then reduced with those of the other
// lanes (lane_reduction.h), and what follows is of the reduced sum, the same on all of them.
//
// With workers that take local steps (sync.local_steps) a push is how far weights have gone, its
// tokens are those who went, and the optimizer is sync.outer: nothing else differs.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/lane_reduction.h"
#include "server/norm_exchange.h"
#include "server/open_pushes.h"
#include "server/push_admission.h"
#include "server/push_handler.h"

namespace tug {

class SummedPushes final : public PushHandler {
 public:
  explicit SummedPushes(const ShardParts& parts);

  void OnPush(Message message) override;
  void OnPushAsked(const Message& message) override;
  void OnNorms(const Message& message) override;
  void OnNormsWanted(const WireHeader& header) override;
  void AskForDeferred() override;
  void OnTick() override;
  void EnterView() override;
  void SetLive() override;
  void SetFinal() override;
  bool TakeUp(std::span<const HeldSegment> held) override;

  SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) override;
  void NameUpdate(uint32_t, WireHeader&) const override {}
  void OnUpdateWritten(uint32_t) override {}  // sums are kept, to tell repeats by
  void ApplyOffered(uint32_t segment, const SegmentUpdate& update, uint32_t record_flags) override;
  void AfterOffered(uint32_t) override {}

  ShardActivity activity() const override;
  LaneReduction* reduction() override { return reduction_.has_value() ? &*reduction_ : nullptr; }

 private:
  // What a push would add to this lane's sums.
  struct Fresh {
    uint32_t missing = 0;  // open segments that lack it
    uint32_t dropped = 0;  // segments whose clock has closed without it
    bool valid = true;     // its clock can have been reached
  };

  // Fills in open_segments_.
  Fresh Examine(const WireHeader& push);
  // Whether nothing of the push is lacking, or can be taken: then it is answered.
  bool AnswerKnown(const PushKey& key, const Fresh& fresh);
  // Whether the lane lacks a push of which only the header has come; else it is answered.
  bool Lacks(const WireHeader& push);
  // kPush without its payload: kPushWanted, or kDeferred.
  void OnAnnounced(const WireHeader& header);
  // None of its segments is open at its clock.
  void AnswerClosed(const PushKey& key, const Fresh& fresh);
  bool AnswerIfClosed(const PushKey& key);
  void AddToSums(const PushKey& key);
  // Whether the policy closes the open clock with what has arrived: then the sum is complete.
  bool Closes(uint32_t segment);
  uint32_t LiveArrived(const SegmentState& state) const;

  // The second half of a clock, from complete sums to the next version (summed_closing.cc).
  // Of the pushes that come here: reduced, or all that there are.
  void OnLocalSum(uint32_t segment);
  void OnReduced(const LaneReduction::Reduced& reduced);
  void OnSummed(uint32_t segment);
  void CloseAlone(uint32_t segment);
  void CloseScope(uint32_t scope);
  bool NormsAreOfMeans() const;
  // What multiplies a segment's sum of squares before lanes exchange it.
  double NormScale(uint64_t tokens) const;
  float GradientScale(double sum_of_squares, uint64_t tokens) const;
  void Skip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker) const;
  // The sum is all that version + 1 is made of: `scale` = none keeps the weights.
  void Close(uint32_t segment, std::optional<float> scale);
  void MaybeSnapshot(uint32_t segment);

  const OptimizerConfig::Clip clip_;
  PushAdmission admission_;
  OpenPushes open_pushes_;
  std::optional<NormExchange> norms_;  // none with `clip: off`
  std::optional<LaneReduction> reduction_;
  std::vector<uint32_t> summed_;  // segments that the push in hand completes
};

}  // namespace tug

#endif  // TUG_SERVER_SUMMED_PUSHES_H_
