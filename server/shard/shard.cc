// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "config/sync_mode.h"
#include "server/shard/applied_pushes.h"
#include "server/shard/summed_pushes.h"

namespace tug {
namespace {

bool UpdatesPerPush(const ShardOptions& options) {
  return SyncModeOf(options.sync.policy()).update_per_push;
}

std::unique_ptr<PushHandler> MakePushHandler(const ShardParts& parts) {
  if (UpdatesPerPush(parts.context.options)) return std::make_unique<AppliedPushes>(parts);
  return std::make_unique<SummedPushes>(parts);
}

std::vector<uint32_t> HeldSegments(const ShardOptions& options) {
  std::vector<uint32_t> held;
  for (uint32_t id = 0; id < options.lane_of_segment.size(); ++id) {
    const bool copies =
        !options.copies.empty() && std::find(options.copies[id].begin(), options.copies[id].end(),
                                             options.lane) != options.copies[id].end();
    if (options.lane_of_segment[id] == options.lane || copies) held.push_back(id);
  }
  return held;
}

}  // namespace

Shard::Shard(ShardOptions options, const SegmentTable& table, ShardSinks sinks)
    : context_(std::move(options), table, std::move(sinks)),
      held_(HeldSegments(context_.options)),
      own_(context_, UpdatesPerPush(context_.options)),
      pulls_(context_, own_),
      copies_(context_, own_),
      pushes_(MakePushHandler({context_, own_, pulls_, copies_})) {
  TUG_CHECK(context_.options.lane_of_segment.size() == table.size());
  TUG_CHECK(context_.options.copies.empty() || context_.options.copies.size() == table.size());
  TUG_CHECK(context_.options.block_names.size() == table.num_blocks());
}

// ---- messages ----

void Shard::OnMessage(Message message, absl::Time now) {
  context_.now = now;
  own_.Start();
  // It has its own fence, which does not depend on the view.
  if (reduction() != nullptr && LaneReduction::IsFor(message.header.kind)) {
    return reduction()->OnMessage(std::move(message), now);
  }
  if (Fenced(message)) return;
  Dispatch(std::move(message));
  Settle();
}

void Shard::Dispatch(Message message) {
  switch (message.header.kind) {
    case MessageKind::kPush:
      return pushes_->OnPush(std::move(message));
    case MessageKind::kPushAsked:
      return pushes_->OnPushAsked(message);
    case MessageKind::kPull:
      return pulls_.OnPull(message);
    case MessageKind::kWeightsReceived:
      return pulls_.OnWeightsReceived(message);
    case MessageKind::kNorms:
      return pushes_->OnNorms(message);
    case MessageKind::kNormsWanted:
      return pushes_->OnNormsWanted(message.header);
    case MessageKind::kWeights:
    case MessageKind::kRefused:
      return pulls_.OnAnswerToCache(message);
    case MessageKind::kUpdate:
    case MessageKind::kCopied:
    case MessageKind::kCopyWanted:
    case MessageKind::kCopy:
      return copies_.OnMessage(message);
    case MessageKind::kReceived:
    case MessageKind::kCommitted:
    case MessageKind::kDropped:
    case MessageKind::kDeferred:
    case MessageKind::kPushWanted:
    case MessageKind::kElements:
    case MessageKind::kInCollective:
    case MessageKind::kRankFailed:
    case MessageKind::kClearToSend:
      return context_.Malformed(message.header, "has a kind that lanes do not receive");
  }
}

void Shard::Settle() {
  pushes_->AskForDeferred();
  copies_.Replicate(*pushes_);
}

bool Shard::Fenced(const Message& message) {
  const WireHeader& header = message.header;
  if (header.job != context_.options.job) {
    context_.Malformed(header, "belongs to another job");
    return true;
  }
  if (header.timeline == context_.options.timeline && !IsFromPast(header)) return false;
  ++context_.counters.refused;
  if (IsWorker(header.sender) || header.kind == MessageKind::kPull) {
    context_.Reply(MessageKind::kRefused, header, 0);
  } else {
    pulls_.OnFenced(header);
  }
  return true;
}

// Norms belong to a clock, and to the same lanes and segments throughout a placement. A lane gets
// kRefused only for its pulls; for everything else, the later one of two lanes to enter a view
// resends what the other may have missed.
bool Shard::IsFromPast(const WireHeader& header) const {
  const bool norms = header.kind == MessageKind::kNorms || header.kind == MessageKind::kNormsWanted;
  if (norms && !IsWorker(header.sender)) {
    return header.view < context_.options.placement || header.view > context_.view;
  }
  return header.view != context_.view;
}

// ---- time, views, the end ----

void Shard::OnTick(absl::Time now) {
  context_.now = now;
  pushes_->OnTick();
  pulls_.OnTick();
  copies_.OnTick();
  copies_.Replicate(*pushes_);
}

void Shard::SetPullCredit(uint64_t pull_credit_bytes, absl::Time now) {
  context_.now = now;
  pulls_.SetCredit(pull_credit_bytes);
}

void Shard::SetView(uint32_t view, const LiveSet& live, absl::Time now) {
  context_.now = now;
  if (view != context_.view) EnterView(view);
  SetLive(live);
}

void Shard::EnterView(uint32_t view) {
  context_.view = view;
  pushes_->EnterView();
  pulls_.EnterView();
  copies_.EnterView();
  copies_.Replicate(*pushes_);
}

void Shard::SetLive(const LiveSet& live) {
  TUG_CHECK_EQ(live.size(), context_.options.virtual_workers);
  context_.live = live;
  pushes_->SetLive();
  Settle();
}

void Shard::SetFinalVersion(uint64_t version) {
  if (own_clocks() || context_.final_version == version) return;
  context_.final_version = version;
  pushes_->SetFinal();
}

void Shard::SetFinalClocks(std::span<const uint64_t> clocks, uint64_t version, absl::Time now) {
  if (!own_clocks() || clocks.size() != context_.options.virtual_workers) return;
  std::vector<uint64_t>& final_clocks = context_.final_clocks;
  if (version == context_.final_version &&
      std::equal(clocks.begin(), clocks.end(), final_clocks.begin(), final_clocks.end())) {
    return;
  }
  context_.now = now;
  context_.final_version = version;
  final_clocks.assign(clocks.begin(), clocks.end());
  pushes_->SetFinal();
}

bool Shard::finished() const {
  const std::vector<uint32_t>& ids = own_.ids();
  return !context_.final_clocks.empty() &&
         std::all_of(ids.begin(), ids.end(), [this](uint32_t id) { return own_.state(id).final; });
}

void Shard::SnapshotStart() {
  start_snapshot_ = true;
  for (const uint32_t id : own_.ids()) own_.Snapshot(id, context_.options.start_version);
}

uint64_t Shard::peak_held_bytes() const {
  const LaneReduction* const reduces = pushes_->reduction();
  return own_.pool().max_size_bytes() + (reduces != nullptr ? reduces->buffer_bytes() : 0);
}

// ---- initial state ----

std::span<float> Shard::weights(uint32_t segment) {
  if (!own_.has(segment)) return copies_.store().weights(segment);
  return own_.weights().weights(segment, version(segment));
}

std::span<float> Shard::m(uint32_t segment) {
  return own_.has(segment) ? own_.weights().m(segment) : copies_.store().m(segment);
}

std::span<float> Shard::v(uint32_t segment) {
  return own_.has(segment) ? own_.weights().v(segment) : copies_.store().v(segment);
}

void Shard::SetClocks(uint32_t segment, std::span<const uint64_t> clocks) {
  TUG_CHECK(!own_.started());
  TUG_CHECK_EQ(clocks.size(), size_t{1} + context_.options.virtual_workers);
  if (own_.has(segment)) return own_.SetClocks(segment, clocks);
  copies_.store().SetClocks(segment, clocks[0], clocks.subspan(1));
}

std::optional<HeldSegment> Shard::Held(uint32_t segment) const {
  if (own_.has(segment)) return own_.Held(segment);
  return copies_.store().has(segment) ? copies_.store().Held(segment) : std::nullopt;
}

// Moves the state of segments whose role stays the same; copies the rest.
absl::Status Shard::InheritSegments(Shard* before) {
  std::vector<HeldSegment> held;
  for (const uint32_t id : own_.ids()) {
    const std::optional<HeldSegment> had = before == nullptr ? std::nullopt : before->Held(id);
    if (!had.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("lane ", context_.options.lane, " was assigned segment ", id,
                       " but has no replica of it; resume from the last checkpoint (tug train JOB "
                       "--resume RUN) and report this bug"));
    }
    held.push_back(*had);
  }
  CopyStore& copies = copies_.store();
  for (const uint32_t id : copies.segments()) {
    if (before == nullptr) {
      copies.Forget(id);
    } else if (before->own_.has(id)) {
      copies.Set(id, before->own_.Held(id));
    } else {
      copies.InheritFrom(before->copies_.store(), id);
    }
  }
  if (!own_.RecoverState(held, before == nullptr ? nullptr : &before->own_) ||
      !pushes_->RecoverState(held)) {
    return absl::FailedPreconditionError(
        absl::StrCat("lane ", context_.options.lane,
                     " was assigned segments with inconsistent states; resume from the last "
                     "checkpoint (tug train --resume RUN) and report this bug"));
  }
  return absl::OkStatus();
}

absl::Status Shard::InheritFrom(Shard* before, absl::Time now) {
  TUG_CHECK(!own_.started());
  if (SyncModeOf(context_.options.sync.policy()).skips_steps) {
    return absl::FailedPreconditionError(
        "sync.policy BACKUP cannot move segments to other servers; use another policy");
  }
  if (before != nullptr && before->context_.options.timeline != context_.options.timeline) {
    before = nullptr;
  }
  context_.now = now;
  if (before != nullptr) before->own_.Start();
  if (const absl::Status taken = InheritSegments(before); !taken.ok()) return taken;
  if (before != nullptr) {
    context_.InheritFrom(before->context_);
    start_snapshot_ = before->start_snapshot_;
  }
  for (const uint32_t id : own_.ids()) {
    if (start_snapshot_ && version(id) == own_.start_version()) {
      own_.Snapshot(id, context_.options.start_version);
    }
  }
  EnterView(context_.view);
  SetLive(LiveSet(context_.live));
  copies_.AskAll();
  copies_.Replicate(*pushes_);
  return absl::OkStatus();
}

}  // namespace tug
