#ifndef TUG_SERVER_PULL_SERVICE_H_
#define TUG_SERVER_PULL_SERVICE_H_

// How a lane answers pulls of its segments. Life of one:
//
//   1. It waits until the policy (sync_policy.h) serves it from every segment of its range, at the
//      first that is not ready (waiting_pulls.h).
//   2. Where its worker shares the memory, it is answered at once, with the weights in place; else
//      in the order of comm.scheduler under the worker's credit (answer_queue.h).
//   3. Answers: kWeights; kRefused where its version is not to be had any more.
//
// With placement.host_weight_cache, a pull of segments that the lane keeps for its host
// (weight_cache.h) waits until their owner has answered, and is answered as one of its own.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/lease.h"
#include "server/answer_queue.h"
#include "server/own_segments.h"
#include "server/served_weights.h"
#include "server/shard_context.h"
#include "server/waiting_pulls.h"
#include "server/weight_cache.h"

namespace tug {

// Not thread-safe: owned by one lane.
class PullService {
 public:
  // REQUIRES: both outlive it.
  PullService(ShardContext& context, OwnSegments& own);

  void OnPull(const Message& message);
  void OnWeightsReceived(const Message& message);
  // kWeights and kRefused, of what is asked for others.
  void OnAnswerToCache(const Message& message);
  // What came of another view or timeline to this lane, which may have asked for it.
  void OnFenced(const WireHeader& header);
  // Takes back the credit of lost answers.
  void OnTick();
  // Of another view: workers ask again for what they want.
  void EnterView();
  // In place of ShardOptions::pull_credit_bytes.
  void SetCredit(uint64_t pull_credit_bytes);

  // Segments have moved on: answers what waits at this one and is ready now,
  void LookAgain(uint32_t segment);
  // of that what `which(header)` is true of,
  template <typename Which>
  void LookAgain(uint32_t segment, Which which) {
    waiting_.TakeEach(
        segment, [this](WaitingPull pull) { LookAgain(std::move(pull)); }, which);
  }
  // or what waits at any.
  void LookAgainAtAll();

  const WaitingPulls& waiting() const { return waiting_; }
  // Null unless somebody asks what was served.
  const ServedWeights* served() const { return served_.has_value() ? &*served_ : nullptr; }
  // Of answers: sent and not known to be there; not sent for want of credit.
  uint64_t outstanding_bytes() const { return answers_.outstanding_bytes(); }
  uint64_t waiting_bytes() const { return answers_.waiting_bytes(); }
  // WeightCache::most_held_bytes.
  uint64_t most_cached_bytes() const { return cache_.has_value() ? cache_->most_held_bytes() : 0; }

 private:
  bool IsPull(const Message& message) const;
  bool MayPull(PeerId sender) const { return IsWorker(sender) || cache_.has_value(); }
  // Whether it begins with a segment of another lane. REQUIRES: it exists.
  bool IsElsewhere(const WireHeader& pull) const { return !own_.has(context_.FirstId(pull)); }
  PullWish WishOf(const WireHeader& pull) const;
  bool MayWait(const WireHeader& pull) const;
  // Forgets pulls of the same sender that this one, which is to wait, takes the place of.
  void MakeRoomFor(const WireHeader& pull);
  // The first segment that the policy does not serve to the pull yet; none if it can be answered.
  std::optional<uint32_t> NotReady(const WireHeader& pull) const;
  // What a pull is answered with, where it is ready: changes only to who holds what they follow on.
  Codec AnswerCodec(const WireHeader& pull) const;
  uint64_t AnswerBytes(const WaitingPull& pull) const;
  // Answers it, now or in its turn.
  void OnReady(WaitingPull pull);
  // Answers it, or lets it wait where it is not ready.
  void LookAgain(WaitingPull pull);
  // The answers whose turn has come.
  void SendAnswers(PeerId worker);
  void SendFreed();
  // False if that version is not to be had any more. `number`: AnswerQueue::Turn, 0 for none.
  bool Answer(const WaitingPull& pull, uint64_t number);
  bool AnswerFromOwn(const WaitingPull& pull, uint64_t number);
  bool AnswerFromCache(const WireHeader& pull, uint64_t number);
  void NoteServed(const WireHeader& pull, uint64_t oldest);
  void SendWeights(const WireHeader& pull, Codec codec, uint64_t version, uint64_t number,
                   Lease weights);
  // Pulls of a block that wait for what the cache no longer asks for: there is a later `version`.
  void RefuseGivenUp(uint32_t block, uint64_t version);

  ShardContext& context_;
  OwnSegments& own_;
  WaitingPulls waiting_;
  const uint64_t lanes_;  // that own segments: each has an equal part of a worker's credit
  AnswerQueue answers_;
  std::optional<WeightCache> cache_;
  std::optional<ServedWeights> served_;
  std::vector<PeerId> freed_;  // workers that have credit again; scratch
};

}  // namespace tug

#endif  // TUG_SERVER_PULL_SERVICE_H_
