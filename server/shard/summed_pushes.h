// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_SUMMED_PUSHES_H_
#define TUG_SERVER_SHARD_SUMMED_PUSHES_H_

// Pushes that are summed (sync.policy BSP, BACKUP). Life of a push in the shard's view:
//
//   1. Identity (segment, virtual worker, clock): a repeat is acknowledged, not applied again.
//   2. Admission (push_admission.h): over the memory bound -> kDeferred, then kPushWanted once it
//      fits. An announcement (header only) gets one of the two at once.
//   3. Sum: each segment's part joins its sum tree in place (sum_tree.h). Answer kReceived: returns
//      the sender's credit and, with senders_let_go, lets it free the gradient. Omitted if the push
//      closes all its segments: step 5 answers. kPushAsked is answered like a repeat.
//   4. Close: sync_policy.h closes a segment's clock when all live virtual workers have pushed
//      (BACKUP: all but k, whose pushes get kDropped). With clipping, lanes first agree on one
//      scale (norm_exchange.h). The optimizer makes version clock + 1 (own_segments.h). The
//      previous version stays readable until the next update, which cannot start before every lane
//      has closed this clock.
//   5. kCommitted to the senders; then waiting pulls are answered (pull_service.h).
//
// `exchange: ALL_REDUCE` (ShardOptions::reduction): every lane has all segments. In 4. a clock
// closes when the lane's own worker has pushed; lanes then all-reduce their sums (lane_reduction.h)
// and all continue with the same one.
//
// sync.local_steps: a push is the change of the weights, its token_count is 1 per virtual worker,
// and the optimizer is sync.outer. All else is the same.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/pushes/open_pushes.h"
#include "server/pushes/push_admission.h"
#include "server/shard/norm_exchange.h"
#include "server/shard/push_handler.h"
#include "server/sums/lane_reduction.h"

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
  bool RecoverState(std::span<const HeldSegment> held) override;

  SegmentUpdate NextUpdate(uint32_t segment, uint32_t& record_flags) override;
  void NameUpdate(uint32_t, WireHeader&) const override {}
  void OnUpdateWritten(uint32_t) override {}  // sums are kept, to recognise repeats
  void ApplyOffered(uint32_t segment, const SegmentUpdate& update, uint32_t record_flags) override;
  void AfterOffered(uint32_t) override {}

  ShardActivity activity() const override;
  LaneReduction* reduction() override { return reduction_.has_value() ? &*reduction_ : nullptr; }

 private:
  // Result of Examine: a push compared with this lane's sums.
  struct Fresh {
    uint32_t missing = 0;  // open segments without it
    uint32_t dropped = 0;  // segments whose clock has closed without it
    bool valid = true;     // its clock may have been reached
  };

  // Sets open_segments_.
  Fresh Examine(const WireHeader& push);
  // Answers a push that is a repeat or too late. False: the lane needs it, or tracks too many.
  bool AnswerKnown(const PushKey& key, const Fresh& fresh);
  // Whether the lane needs the payload of a push, given its header; otherwise answers it.
  bool Lacks(const WireHeader& push);
  // kPush without payload: answers kPushWanted or kDeferred.
  void OnAnnounced(const WireHeader& header);
  // REQUIRES: none of its segments is open at its clock.
  void AnswerClosed(const PushKey& key, const Fresh& fresh);
  bool AnswerIfClosed(const PushKey& key);
  void AddToSums(const PushKey& key);
  // Whether the policy closes the open clock with the pushes so far: then completes the sum.
  bool Closes(uint32_t segment);
  uint32_t LiveArrived(const SegmentState& state) const;

  // The second half of a clock, from complete sums to the next version (summed_closing.cc).
  // The sum of this lane's pushes is complete: starts the all-reduce, or calls OnSummed.
  void OnLocalSum(uint32_t segment);
  void OnReduced(const LaneReduction::Reduced& reduced);
  void OnSummed(uint32_t segment);
  void CloseAlone(uint32_t segment);
  void CloseScope(uint32_t scope);
  bool NormsAreOfMeans() const;
  // Factor on a segment's sum of squares before lanes exchange it.
  double NormScale(uint64_t tokens) const;
  float GradientScale(double sum_of_squares, uint64_t tokens) const;
  void Skip(uint64_t clock, uint32_t block, uint32_t bad_virtual_worker) const;
  // Makes version + 1 from the complete sum. `scale` none: the weights stay unchanged.
  void Close(uint32_t segment, std::optional<float> scale);
  void MaybeSnapshot(uint32_t segment);

  const OptimizerConfig::Clip clip_;
  PushAdmission admission_;
  OpenPushes open_pushes_;
  std::optional<NormExchange> norms_;  // none with `clip: OFF`
  std::optional<LaneReduction> reduction_;
  std::vector<uint32_t> summed_;  // segments completed by the current push
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_SUMMED_PUSHES_H_
