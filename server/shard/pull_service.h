// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_PULL_SERVICE_H_
#define TUG_SERVER_SHARD_PULL_SERVICE_H_

// Answers pulls of a lane's segments. Life of a pull:
//
//   1. It waits until the policy (sync_policy.h) serves every segment of its range, at the first
//      one that is not ready (waiting_pulls.h).
//   2. If its worker shares the lane's memory, it is answered at once, with the weights in place;
//      else in comm.scheduler order under the worker's credit (answer_queue.h).
//   3. Answers: kWeights; kRefused if its version is no longer available.
//
// With placement.host_weight_cache, the lane also answers pulls of segments it caches for its host,
// once their owner has sent them (weight_cache.h).

#include <cstdint>
#include <optional>
#include <vector>

#include "base/memory/lease.h"
#include "server/pulls/answer_queue.h"
#include "server/pulls/served_weights.h"
#include "server/pulls/waiting_pulls.h"
#include "server/pulls/weight_cache.h"
#include "server/shard/own_segments.h"
#include "server/shard/shard_context.h"

namespace tug {

// Not thread-safe: owned by one lane.
class PullService {
 public:
  // REQUIRES: both outlive it.
  PullService(ShardContext& context, OwnSegments& own);

  void OnPull(const Message& message);
  void OnWeightsReceived(const Message& message);
  // kWeights and kRefused: answers to the cache's own pulls.
  void OnAnswerToCache(const Message& message);
  // A message of another view or timeline; it may answer a pull of this lane.
  void OnFenced(const WireHeader& header);
  // Releases the credit of lost answers, and resends overdue pulls of the cache.
  void OnTick();
  // In a new view: drops waiting pulls, which workers send again.
  void EnterView();
  // Replaces ShardOptions::pull_credit_bytes.
  void SetCredit(uint64_t pull_credit_bytes);

  // A segment has advanced: answers the pulls that wait at it and are ready now.
  void LookAgain(uint32_t segment);
  // The same, for pulls with `which(header)` only.
  template <typename Which>
  void LookAgain(uint32_t segment, Which which) {
    waiting_.TakeEach(
        segment, [this](WaitingPull pull) { LookAgain(std::move(pull)); }, which);
  }
  // The same, for all segments.
  void LookAgainAtAll();

  const WaitingPulls& waiting() const { return waiting_; }
  // Null unless delay compensation or sync.record needs it.
  const ServedWeights* served() const { return served_.has_value() ? &*served_ : nullptr; }
  // Bytes of answers: sent and not acknowledged; not sent for lack of credit.
  uint64_t outstanding_bytes() const { return answers_.outstanding_bytes(); }
  uint64_t waiting_bytes() const { return answers_.waiting_bytes(); }
  // WeightCache::peak_held_bytes.
  uint64_t peak_cached_bytes() const { return cache_.has_value() ? cache_->peak_held_bytes() : 0; }

 private:
  bool IsPull(const Message& message) const;
  bool MayPull(PeerId sender) const { return IsWorker(sender) || cache_.has_value(); }
  // Whether another lane owns its first segment. REQUIRES: the range exists.
  bool IsElsewhere(const WireHeader& pull) const { return !own_.has(context_.FirstId(pull)); }
  PullWish WishOf(const WireHeader& pull) const;
  bool MayWait(const WireHeader& pull) const;
  // Removes the sender's waiting pulls that this one replaces.
  void MakeRoomFor(const WireHeader& pull);
  // First segment that the policy does not serve yet; none: the pull can be answered.
  std::optional<uint32_t> NotReady(const WireHeader& pull) const;
  // Codec of the answer: kChanges only if the worker holds the version they apply to.
  Codec AnswerCodec(const WireHeader& pull) const;
  uint64_t AnswerBytes(const WaitingPull& pull) const;
  // Answers a ready pull, at once or through the answer queue.
  void OnReady(WaitingPull pull);
  // Answers the pull, or lets it wait at its first unready segment.
  void LookAgain(WaitingPull pull);
  // Sends the worker's queued answers as far as its credit allows.
  void SendAnswers(PeerId worker);
  void SendFreed();
  // False: the version is no longer available. `number`: AnswerQueue::Turn::number; 0: no credit.
  bool Answer(const WaitingPull& pull, uint64_t number);
  bool AnswerFromOwn(const WaitingPull& pull, uint64_t number);
  bool AnswerFromCache(const WireHeader& pull, uint64_t number);
  void NoteServed(const WireHeader& pull, uint64_t oldest);
  void SendWeights(const WireHeader& pull, Codec codec, uint64_t version, uint64_t number,
                   Lease weights);
  // Refuses pulls of a block that wait for a version the cache no longer requests, since `version`
  // is newer.
  void RefuseGivenUp(uint32_t block, uint64_t version);

  ShardContext& context_;
  OwnSegments& own_;
  WaitingPulls waiting_;
  const uint64_t lanes_;  // number that own segments, which share a worker's credit equally
  AnswerQueue answers_;
  std::optional<WeightCache> cache_;
  std::optional<ServedWeights> served_;
  std::vector<PeerId> freed_;  // scratch: workers with new credit
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_PULL_SERVICE_H_
