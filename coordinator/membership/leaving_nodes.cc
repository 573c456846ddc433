// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/leaving_nodes.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

absl::Status IsTheOnly(NodeKind node_kind) {
  const std::string kind = KindName(node_kind);
  return absl::FailedPreconditionError(absl::StrCat("it is the only ", kind,
                                                    ": start another one first (tug ", kind,
                                                    "), or stop the job instead: tug stop"));
}

// Key of the notice that the node cannot leave.
std::string StaysKey(const Member& member) { return absl::StrCat("stays ", member.id); }

// Whether the worker has finished, or reported the step that it was in when told to pause.
bool HasPausedToLeave(const Member& member) {
  if (member.finished) return true;
  return member.pausing && (!member.started || member.reported >= member.clock);
}

}  // namespace

absl::Status LeavingNodes::MayLeave(const Member& member) const {
  if (config_.model().external()) {
    return absl::FailedPreconditionError(
        "external workers (model.external) cannot take over for each other, so no node of this job "
        "can leave. Stop the job instead: tug stop");
  }
  if (AllReduces(config_)) {
    return absl::FailedPreconditionError(
        "an all-reduce needs all servers (exchange ALL_REDUCE), each with the gradients of the "
        "worker next to it, so no node can leave. Stop the job instead: tug stop");
  }
  if (!ContinuesWithoutNode(config_)) {
    return absl::FailedPreconditionError(
        "workers skip steps (sync.policy BACKUP), so no node can take over from another. Stop the "
        "job instead: tug stop");
  }
  if (!views_.begun() || stage_.rolling_back()) return absl::OkStatus();
  const PlacementMode& placement = PlacementModeOf(config_);
  if (member.kind == SERVER && member.placed && placement.frees_gradients) {
    return absl::FailedPreconditionError(
        absl::StrCat("workers free gradients once servers have received them (placement.kind ",
                     PlacementConfig::Kind_Name(placement.kind),
                     "), and cannot push them again to another server: no server can leave. Stop "
                     "the job instead: tug stop"));
  }
  if (member.kind == SERVER && member.placed && !views_.MovesSegments()) {
    return absl::FailedPreconditionError(
        "updates of this job are logged (sync.record ORDER), which requires servers to keep their "
        "segments: no server can leave. Stop the job instead: tug stop");
  }
  const bool others =
      std::ranges::any_of(membership_.OfKind(member.kind), [&member](const Member* other) {
        const bool usable = other->kind == WORKER || !other->lane_endpoints.empty();
        return other->id != member.id && !other->leaving && usable;
      });
  if (others || (member.kind == SERVER && !member.placed)) return absl::OkStatus();
  return IsTheOnly(member.kind);
}

absl::Status LeavingNodes::MayBeDrained(const Member& member) const {
  absl::Status may = MayLeave(member);
  // A drained node is not replaced.
  if (stage_.rolling_back() && membership_.CountStaying(member.kind, member.id) == 0) {
    may.Update(IsTheOnly(member.kind));
  }
  if (may.ok()) return may;
  return absl::FailedPreconditionError(
      absl::StrCat(member.NameAndPlace(), " cannot leave: ", may.message()));
}

DrainReply LeavingNodes::Drain(Member& member) {
  const uint32_t owned = views_.OwnedSegments(member);
  member.drained = true;
  Begin(member);
  std::string hands_over;
  if (owned > 0) {
    hands_over = absl::StrCat(" hands over ", SegmentsText(owned), " and");
  } else if (views_.begun() && views_.Includes(member)) {
    hands_over = " hands over its work and";
  }
  DrainReply reply;
  reply.set_message(absl::StrCat(member.NameAndPlace(), hands_over, " leaves"));
  return reply;
}

void LeavingNodes::Begin(Member& member) {
  member.leaving = true;
  member.pausing = false;  // an earlier pause was not for leaving
  for (const Member* other : membership_.OfKind(member.kind)) {
    if (other->id != member.id && !other->leaving) member.unheard.insert(other->id);
  }
  actions_.AddNotice(absl::StrCat("leaving ", member.id),
                     absl::StrCat(member.NameAndPlace(), " is draining"));
}

void LeavingNodes::Absorb(Member& member, const HeartbeatRequest& request) {
  if (!request.leaving() || member.leaving) return;
  const absl::Status may = MayLeave(member);
  if (may.ok()) return Begin(member);
  actions_.AddNotice(StaysKey(member),
                     absl::StrCat(member.NameAndPlace(), " cannot leave: ", may.message()));
}

bool LeavingNodes::Wants(const Member& member, const HeartbeatRequest& request) const {
  return request.leaving() && !member.leaving &&
         (actions_.TakesNotice(StaysKey(member)) || MayLeave(member).ok());
}

// A leaving worker finishes its current step first: others would have to repeat it.
std::vector<uint32_t> LeavingNodes::WorkersThatStay() const {
  std::vector<uint32_t> ids;
  for (const Member* worker : membership_.OfKind(WORKER)) {
    const bool gone = worker->leaving &&
                      (!stage_.running() || !views_.Includes(*worker) || HasPausedToLeave(*worker));
    if (!gone) ids.push_back(worker->id);
  }
  return ids;
}

uint32_t LeavingNodes::NeededToRollBack(NodeKind kind) const {
  const bool all = kind == SERVER || config_.fault().on_worker_loss() == FaultConfig::WAIT;
  return all ? membership_.wanted(kind) : 1;
}

bool LeavingNodes::IsWaitedFor(const Member& member) const {
  if (!views_.begun()) return true;
  const uint32_t staying = membership_.CountStaying(member.kind, member.id);
  // The last one leaves only if another one was lost after its request.
  return staying == 0 || (stage_.rolling_back() && staying < NeededToRollBack(member.kind));
}

bool LeavingNodes::MayBeLetGo(const Member& member) const {
  if (!member.leaving || member.let_go || stage_.ended() || !member.unheard.empty()) return false;
  if (!views_.begun() || stage_.rolling_back()) return true;
  if (views_.Includes(member) || (member.kind == SERVER && views_.HoldsSegments(member))) {
    return false;
  }
  // No node sends it requests once all know a view without it.
  return views_.Everyone(
      [&member](const Member& other) { return other.known_view >= member.left_in_view; });
}

void LeavingNodes::LetGo() {
  membership_.ForEach([this](Member& member) {
    if (!MayBeLetGo(member)) return;
    member.let_go = true;
    member.missed = !member.drained && IsWaitedFor(member);
    if (!member.missed && views_.begun()) membership_.WantNoneInPlaceOf(member);
  });
}

void LeavingNodes::AddTo(const Member& member, HeartbeatReply& reply) const {
  if (!member.leaving || stage_.ended()) return;
  if (member.let_go) {
    reply.set_leave(true);
    reply.set_replace(member.missed);
  } else if (member.kind == WORKER && stage_.phase() == RUNNING) {
    reply.set_pause(true);
    reply.set_final_version(0);  // it would work towards a known final version
    reply.clear_final_clocks();
  }
}

void LeavingNodes::OnLeft(const Member& member) {
  actions_.AddNotice(absl::StrCat("left ", member.id),
                     absl::StrCat(member.NameAndPlace(), " has left",
                                  member.missed ? "; the job waits for a replacement" : ""));
}

}  // namespace tug
