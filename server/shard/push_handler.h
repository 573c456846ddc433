// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SHARD_PUSH_HANDLER_H_
#define TUG_SERVER_SHARD_PUSH_HANDLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "server/pushes/open_pushes.h"
#include "server/pushes/push_payload.h"
#include "server/segments/held_segment.h"
#include "server/shard/own_segments.h"
#include "server/shard/pull_service.h"
#include "server/shard/shard_activity.h"
#include "server/shard/shard_context.h"
#include "server/shard/shard_copies.h"
#include "server/sums/lane_reduction.h"
#include "transport/transport.h"

namespace tug {

// Parts of a shard that pushes change.
struct ShardParts {
  ShardContext& context;
  OwnSegments& own;
  PullService& pulls;
  ShardCopies& copies;
};

// Turns pushes into versions of a lane's segments. SummedPushes (BSP, BACKUP) and AppliedPushes
// (SSP, ASP) implement it; shard.cc chooses once. Not thread-safe: owned by one lane.
class PushHandler : public CopiedUpdates {
 public:
  // Messages of the shard's view.
  virtual void OnPush(Message message) = 0;
  virtual void OnPushAsked(const Message& message) = 0;
  virtual void OnNorms(const Message& message);
  virtual void OnNormsWanted(const WireHeader& header);
  // Requests deferred pushes that now fit. Called after every event.
  virtual void AskForDeferred() = 0;
  virtual void OnTick() = 0;
  // The shard has entered another view: workers push again what was not committed.
  virtual void EnterView() = 0;
  // The set of live virtual workers has changed (ShardContext::live).
  virtual void SetLive() = 0;
  // The coordinator has set the end of the job (ShardContext::final_version, final_clocks).
  virtual void SetFinal() = 0;
  // OwnSegments has inherited `held`. False if the segments are inconsistent.
  virtual bool RecoverState(std::span<const HeldSegment> held) = 0;

  virtual ShardActivity activity() const = 0;
  virtual LaneReduction* reduction() { return nullptr; }

 protected:
  // REQUIRES: all parts outlive it.
  explicit PushHandler(const ShardParts& parts)
      : context_(parts.context), own_(parts.own), pulls_(parts.pulls), copies_(parts.copies) {}

  // Whether the header names a valid push of this lane's segments. The payload is parsed only if
  // the lane needs the push, so a repeat is answered whatever its payload.
  bool NamesOwnPush(const WireHeader& header) const;
  // Parses the message into push_. False, and counted as malformed, if it has the wrong size or
  // changed while it was read.
  bool Take(Message message);

  // An update whose gradient is not finite.
  struct SkippedUpdate {
    uint64_t clock = 0;
    uint32_t block = 0;
    uint32_t bad_virtual_worker = 0;  // NormEntry::kAllFinite: only the sum is not finite
    OptimizerConfig::Clip clip = OptimizerConfig::OFF;
    bool of_one_push = false;
    const char* remedy = "lower optimizer.learning_rate or optimizer.clip_norm";
  };
  void NoticeSkip(const SkippedUpdate& skipped) const;

  ShardContext& context_;
  OwnSegments& own_;
  PullService& pulls_;
  ShardCopies& copies_;
  // Scratch, kept to avoid allocation: the current push and its open segments.
  PushPayload push_;
  std::vector<uint32_t> open_segments_;
  std::vector<PushKey> wanted_;  // pushes to request; empty between messages
};

}  // namespace tug

#endif  // TUG_SERVER_SHARD_PUSH_HANDLER_H_
