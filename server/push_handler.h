#ifndef TUG_SERVER_PUSH_HANDLER_H_
#define TUG_SERVER_PUSH_HANDLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "server/held_segment.h"
#include "server/lane_reduction.h"
#include "server/open_pushes.h"
#include "server/own_segments.h"
#include "server/pull_service.h"
#include "server/push_payload.h"
#include "server/shard_activity.h"
#include "server/shard_context.h"
#include "server/shard_copies.h"
#include "transport/transport.h"

namespace tug {

// The parts of a shard that pushes change.
struct ShardParts {
  ShardContext& context;
  OwnSegments& own;
  PullService& pulls;
  ShardCopies& copies;
};

// How pushes become versions of a lane's segments. One implementation for policies of sums
// (summed_pushes.h), one for those where every push is an update (applied_pushes.h); the shard
// chooses once. Not thread-safe: owned by one lane.
class PushHandler : public CopiedUpdates {
 public:
  // Messages of the shard's view.
  virtual void OnPush(Message message) = 0;
  virtual void OnPushAsked(const Message& message) = 0;
  virtual void OnNorms(const Message& message);
  virtual void OnNormsWanted(const WireHeader& header);
  // Asks for pushes that can be taken by now. After whatever happens.
  virtual void AskForDeferred() = 0;
  virtual void OnTick() = 0;
  // The shard has entered another view: workers push again what was not committed.
  virtual void EnterView() = 0;
  // Other virtual workers are live (ShardContext::live).
  virtual void SetLive() = 0;
  // The coordinator has said where the job ends (ShardContext::final_version, final_clocks).
  virtual void SetFinal() = 0;
  // OwnSegments has taken these up. False if they do not fit together.
  virtual bool TakeUp(std::span<const HeldSegment> held) = 0;

  virtual ShardActivity activity() const = 0;
  virtual LaneReduction* reduction() { return nullptr; }

 protected:
  // REQUIRES: all parts outlive it.
  explicit PushHandler(const ShardParts& parts)
      : context_(parts.context), own_(parts.own), pulls_(parts.pulls), copies_(parts.copies) {}

  // Whether a push is of what this lane owns, by its header: its payload is looked at only once
  // the lane lacks it. So a repeat is answered whatever its payload.
  bool NamesOwnPush(const WireHeader& header) const;
  // Makes it the push in hand. False, and counted as malformed, if it is of the wrong size, or has
  // changed while it was read.
  bool Take(Message message);

  // An update whose gradient is not finite.
  struct SkippedUpdate {
    uint64_t clock = 0;
    uint32_t block = 0;
    uint32_t bad_virtual_worker = 0;  // NormEntry::kAllFinite: only the sum is not finite
    OptimizerConfig::Clip clip = OptimizerConfig::OFF;
    bool of_one_push = false;
    const char* remedy = "a lower learning rate or a smaller clip_norm helps";
  };
  void NoticeSkip(const SkippedUpdate& skipped) const;

  ShardContext& context_;
  OwnSegments& own_;
  PullService& pulls_;
  ShardCopies& copies_;
  // The push in hand, and its segments that are open; here to be used again.
  PushPayload push_;
  std::vector<uint32_t> open_segments_;
  std::vector<PushKey> wanted_;  // pushes to ask for; empty between two messages
};

}  // namespace tug

#endif  // TUG_SERVER_PUSH_HANDLER_H_
