// SPDX-License-Identifier: Apache-2.0
#include "lab/simulate/planted_lane.h"

#include <utility>

namespace tug {
namespace {

constexpr uint64_t kLosesOneIn = 20;  // one pull in this many

class TakesAgain final : public SyncPolicy {
 public:
  explicit TakesAgain(std::unique_ptr<const SyncPolicy> policy) : policy_(std::move(policy)) {}

  PushFate FateOf(uint32_t virtual_worker, uint64_t clock,
                  const SegmentClocks& segment) const override {
    const PushFate fate = policy_->FateOf(virtual_worker, clock, segment);
    return fate == PushFate::kCommitted ? PushFate::kTake : fate;
  }
  bool Closes(uint32_t arrived, uint32_t live) const override {
    return policy_->Closes(arrived, live);
  }
  uint32_t spare() const override { return policy_->spare(); }
  bool MakesSense(const PullWish& pull, uint32_t virtual_workers) const override {
    return policy_->MakesSense(pull, virtual_workers);
  }
  bool Serves(const PullWish& pull, const SegmentClocks& segment) const override {
    return policy_->Serves(pull, segment);
  }
  bool MayWait(const PullWish& pull, const SegmentClocks& segment) const override {
    return policy_->MayWait(pull, segment);
  }
  bool exact_for_any_clock() const override { return policy_->exact_for_any_clock(); }
  uint64_t VersionServed(const PullWish& pull, uint64_t oldest) const override {
    return policy_->VersionServed(pull, oldest);
  }
  uint64_t ClockServed(const PullWish& pull, uint64_t version) const override {
    return policy_->ClockServed(pull, version);
  }

 private:
  const std::unique_ptr<const SyncPolicy> policy_;
};

}  // namespace

void PlantedLane::Change(uint32_t timeline, uint32_t view, WireHeader& header) const {
  if (bug_ == PlantedBug::kStaleView && header.timeline == timeline && header.view < view) {
    header.view = view;
  }
  if (bug_ == PlantedBug::kOldTimeline && header.timeline < timeline) {
    header.timeline = timeline;
    header.view = view;
  }
}

void PlantedLane::NoteSent(const WireHeader& header) {
  if (bug_ == PlantedBug::kSilentRepeat && header.kind == MessageKind::kReceived) {
    received_.insert(NameOf(header));
  }
}

void PlantedWorker::Change(Outgoing& message) {
  const WireHeader& push = message.header;
  if (bug_ != PlantedBug::kEmptyFrames || push.codec != Codec::kFrames) return;
  const bool first =
      sent_.insert({push.block, push.first_segment, push.virtual_worker, push.clock}).second;
  if (!first) message.payload = Lease();
}

bool PlantedLane::Forgets(const WireHeader& header) {
  if (bug_ == PlantedBug::kSilentRepeat && header.kind == MessageKind::kPush) {
    return received_.contains(NameOf(header));
  }
  if (bug_ != PlantedBug::kLostPull || header.kind != MessageKind::kPull) return false;
  return ++pulls_ % kLosesOneIn == 0;
}

std::optional<Message> PlantedLane::Forged(const Outgoing& sent) const {
  if (bug_ != PlantedBug::kCommitBeforeReplication || sent.header.kind != MessageKind::kUpdate) {
    return std::nullopt;
  }
  Message copied{sent.header, Lease()};
  copied.header.kind = MessageKind::kCopied;
  copied.header.sender = sent.to;
  ++copied.header.version;
  return copied;
}

std::unique_ptr<const SyncPolicy> PlantedPolicy(PlantedBug bug,
                                                std::unique_ptr<const SyncPolicy> policy) {
  if (bug == PlantedBug::kDuplicateCheck) return std::make_unique<TakesAgain>(std::move(policy));
  return policy;
}

}  // namespace tug
