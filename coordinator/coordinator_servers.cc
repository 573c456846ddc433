// Servers of a running job: which of them hold segments, what becomes of those of a lost one, and
// nodes that leave in order.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/coordinator.h"
#include "coordinator/mixed_shares.h"
#include "proto/placement_mode.h"
#include "proto/sync_mode.h"

namespace tug {
namespace {

std::string Segments(uint32_t count) {
  return absl::StrCat(count, " segment", count == 1 ? "" : "s");
}

// "server 3 serves", "servers 3 and 4 serve"
std::string Serve(const std::vector<uint32_t>& servers) {
  if (servers.size() == 1) return absl::StrCat("server ", servers[0], " serves");
  const std::vector<uint32_t> first(servers.begin(), servers.end() - 1);
  return absl::StrCat("servers ", absl::StrJoin(first, ", "), " and ", servers.back(), " serve");
}

absl::Status IsTheOnly(NodeKind node_kind) {
  const std::string kind = KindName(node_kind);
  return absl::FailedPreconditionError(absl::StrCat("it is the only ", kind,
                                                    ": start another one first (tug ", kind,
                                                    "), or end the job with: tug stop"));
}

}  // namespace

// A log of updates is of lanes that keep their segments; and a gradient that its worker has let go
// of cannot be pushed to another lane.
bool Coordinator::MovesSegments() const {
  return Recovers() && options_.config.sync().record() != SyncConfig::ORDER &&
         !PlacementModeOf(options_.config).frees_gradients;
}

void Coordinator::BeginHolders(const std::vector<uint32_t>& servers) {
  for (const auto& [id, unused] : membership_.members()) {
    membership_.Find(id)->placed = std::find(servers.begin(), servers.end(), id) != servers.end();
  }
  holders_.emplace(
      SegmentHolders::Options{.segment_bytes = blocks_.layout().segment_bytes,
                              .replicas = options_.config.sync().replicas(),
                              .lanes_per_server = options_.config.cluster().lanes_per_server()});
  holders_->Begin(servers, WeightsOf(servers));
  holders_->SetPlacement(places_.number());
  placement_pending_ = copies_were_lost_ = false;
}

// In proportion to which servers own segments; none: equally.
std::vector<uint32_t> Coordinator::WeightsOf(const std::vector<uint32_t>& servers) const {
  const std::vector<const Member*> workers = membership_.OfKind(WORKER);
  if (options_.config.placement().kind() != PlacementConfig::MIXED || workers.empty()) return {};
  std::vector<uint64_t> server_hosts, worker_hosts;
  for (const uint32_t id : servers) server_hosts.push_back(membership_.members().at(id).host_id);
  for (const Member* worker : workers) worker_hosts.push_back(worker->host_id);
  return MixedWeights(server_hosts, worker_hosts);
}

void Coordinator::FillPlacement(View& view) const {
  view.clear_lanes();
  view.clear_lane_of_segment();
  view.clear_copies();
  view.set_placement(places_.number());
  for (const LaneId& id : holders_->Lanes()) {
    const Member& server = membership_.members().at(id.server);
    Lane* lane = view.add_lanes();
    lane->set_endpoint(server.lane_endpoints.at(id.index));
    lane->set_server_node_id(id.server);
    lane->set_index_on_server(id.index);
    lane->set_host_id(server.host_id);
  }
  const std::vector<uint32_t> owners = holders_->Owners();
  view.mutable_lane_of_segment()->Assign(owners.begin(), owners.end());
  for (const std::vector<uint32_t>& entry : holders_->Copies()) {
    view.add_copies()->mutable_lane_of_segment()->Assign(entry.begin(), entry.end());
  }
}

void Coordinator::ChangeServers() {
  if (copies_were_lost_ && holders_->AtRisk() == 0) {
    copies_were_lost_ = false;
    AddNotice(
        absl::StrCat("copies ", view_->number()),
        absl::StrCat("all segments have ", options_.config.sync().replicas(), " copies again"));
  }
  if (!MovesSegments()) return;
  // Then only the last checkpoint is still to come: it would have to be written again.
  const bool over = view_->workers_size() > 0 && EveryoneInView([](const Member& node) {
                      return node.kind == SERVER || node.finished;
                    });
  if (!over) GivePlaces();
  std::vector<uint32_t> staying, all;
  for (const Member* server : membership_.OfKind(SERVER)) {
    if (!server->placed) continue;
    all.push_back(server->id);
    if (!server->leaving) staying.push_back(server->id);
  }
  // Everybody who took over from those that leave may be lost.
  const std::vector<uint32_t>& servers = staying.empty() ? all : staying;
  holders_->SetServers(servers, WeightsOf(servers));
  if (!places_.fencing() && !over) holders_->TakeStep();
}

void Coordinator::GivePlaces() {
  const std::vector<const Member*> servers = membership_.OfKind(SERVER);
  auto placed =
      static_cast<uint32_t>(std::count_if(servers.begin(), servers.end(), [](const Member* server) {
        return server->placed && !server->leaving;
      }));
  for (const bool spares : {false, true}) {
    for (const Member* each : servers) {
      Member& server = *membership_.Find(each->id);
      if (server.placed || server.leaving || server.lane_endpoints.empty()) continue;
      if (server.spare != spares || (spares && placed >= servers_wanted_)) continue;
      server.placed = true;
      ++placed;
      AddNotice(absl::StrCat("place ", server.id),
                absl::StrCat(server.Name(), spares ? " takes a free place" : " has joined",
                             ", and gets its part of the segments"));
    }
  }
}

void Coordinator::PrepareNextView() {
  holders_->SetPlacement(places_.number());
  placement_pending_ = true;
  next_view_.Clear();
  next_view_.set_number(places_.number());
  next_view_.set_timeline(view_->timeline());
  next_view_.set_start_version(view_->start_version());
  *next_view_.mutable_blocks() = view_->blocks();
  FillPlacement(next_view_);
}

bool Coordinator::HoldsSegments(const Member& member) const {
  if (!holders_.has_value()) return false;
  const std::vector<uint32_t> servers = holders_->Servers();
  return std::find(servers.begin(), servers.end(), member.id) != servers.end();
}

bool Coordinator::OutlivesServer(const Member& server, const std::string& lost) {
  if (phase_ != RUNNING || rolling_back_ || !MovesSegments()) return false;
  const SegmentHolders::Count held = holders_->CountOf(server.id);
  const SegmentHolders::Removal removal = holders_->RemoveServer(server.id);
  const std::string key = absl::StrCat("lost ", server.id);
  if (removal.orphans > 0) {
    if (options_.config.sync().replicas() > 1) {
      AddNotice(
          absl::StrCat(key, " alone"),
          absl::StrCat(server.Name(), " had the only whole copy of ", Segments(removal.orphans)));
    }
    return false;
  }
  if (removal.owned > 0) {
    AddNotice(key, absl::StrCat(lost, "; ", Serve(removal.successors),
                                removal.owned == 1 ? " the copy" : " the copies", " of its ",
                                Segments(removal.owned)));
  } else {
    AddNotice(key, absl::StrCat(lost, "; what it held is elsewhere too"));
  }
  copies_were_lost_ |=
      options_.config.sync().replicas() > 1 && removal.owned + held.copies > held.missing;
  return true;
}

// ---- nodes that leave ----

uint32_t Coordinator::CountStaying(NodeKind kind, uint32_t but) const {
  const std::vector<const Member*> members = membership_.OfKind(kind);
  return static_cast<uint32_t>(std::ranges::count_if(
      members, [but](const Member* member) { return member->id != but && !member->leaving; }));
}

uint32_t Coordinator::NeededToRollBack(NodeKind kind) const {
  if (kind == SERVER) return servers_wanted_;
  return options_.config.fault().on_worker_loss() == FaultConfig::WAIT ? workers_wanted_ : 1;
}

bool Coordinator::IsWaitedFor(const Member& member) const {
  if (!view_.has_value()) return true;
  return rolling_back_ && OthersThatStay(member) < NeededToRollBack(member.kind);
}

absl::Status Coordinator::MayLeave(const Member& member) const {
  if (options_.config.model().external()) {
    return absl::FailedPreconditionError(
        "the workers of this job are programs of their own (model.external): no other could take "
        "the steps of one, so that no node can leave; end the job with: tug stop");
  }
  if (AllReduces(options_.config)) {
    return absl::FailedPreconditionError(
        "an all-reduce is among all servers (exchange ALL_REDUCE), each with the gradients of the "
        "worker beside it, so that no node can leave; end the job with: tug stop");
  }
  if (!Recovers()) {
    return absl::FailedPreconditionError(
        "steps are skipped in this job (sync.policy BACKUP), so that nobody can take over from a "
        "node that leaves; end the job with: tug stop");
  }
  if (!view_.has_value() || rolling_back_) return absl::OkStatus();
  const PlacementMode& placement = PlacementModeOf(options_.config);
  if (member.kind == SERVER && member.placed && placement.frees_gradients) {
    return absl::FailedPreconditionError(absl::StrCat(
        "workers let go of gradients that servers have received (placement.kind ",
        PlacementConfig::Kind_Name(placement.kind),
        "), and cannot push them to others: none of the servers can leave; end the job with: tug "
        "stop"));
  }
  if (member.kind == SERVER && member.placed && !MovesSegments()) {
    return absl::FailedPreconditionError(
        "updates of this job are logged (sync.record ORDER), and the log is of servers that keep "
        "their segments: none of them can leave; end the job with: tug stop");
  }
  const std::vector<const Member*> nodes = membership_.OfKind(member.kind);
  const bool others = std::any_of(nodes.begin(), nodes.end(), [&](const Member* other) {
    const bool usable = other->kind == WORKER || !other->lane_endpoints.empty();
    return other->id != member.id && !other->leaving && usable;
  });
  if (others || (member.kind == SERVER && !member.placed)) return absl::OkStatus();
  return IsTheOnly(member.kind);
}

absl::StatusOr<DrainReply> Coordinator::OnDrain(uint32_t node_id, absl::Time now) {
  Member* const member = membership_.Find(node_id);
  if (member == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the job has no node ", node_id, ": tug status lists those it has"));
  }
  if (Ended()) return absl::FailedPreconditionError("the job has ended");
  DrainReply reply;
  if (member->leaving) {
    reply.set_message(absl::StrCat(member->Name(), " is about to leave already"));
    return reply;
  }
  absl::Status may = MayLeave(*member);
  // Nobody starts another one in place of a node that was drained.
  if (rolling_back_ && OthersThatStay(*member) == 0) may.Update(IsTheOnly(member->kind));
  if (!may.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(member->Name(), " cannot leave: ", may.message()));
  }
  const uint32_t owned = holders_.has_value() ? holders_->CountOf(node_id).owned : 0;
  Keep(now, [&](JournalRecord& record) { record.mutable_drain()->set_node_id(node_id); });
  member->drained = true;
  BeginLeaving(*member);
  Advance(now);
  if (member->kind == SERVER && owned > 0) {
    reply.set_message(absl::StrCat(member->Name(), " hands over ", Segments(owned), " and leaves"));
  } else if (view_.has_value() && IsInView(*member)) {
    reply.set_message(absl::StrCat(member->Name(), " hands over what it has and leaves"));
  } else {
    reply.set_message(absl::StrCat(member->Name(), " leaves"));
  }
  return reply;
}

void Coordinator::BeginLeaving(Member& member) {
  member.leaving = true;
  member.pausing = false;  // what it was told before was of something else
  for (const Member* other : membership_.OfKind(member.kind)) {
    if (other->id != member.id && !other->leaving) member.unheard.insert(other->id);
  }
  AddNotice(absl::StrCat("leaving ", member.id), absl::StrCat(member.Name(), " is about to leave"));
}

void Coordinator::AbsorbLeaving(Member& member, const HeartbeatRequest& request) {
  if (!request.leaving() || member.leaving) return;
  const absl::Status may = MayLeave(member);
  if (may.ok()) return BeginLeaving(member);
  AddNotice(absl::StrCat(kStaysKey, member.id),
            absl::StrCat(member.Name(), " cannot leave: ", may.message()));
}

bool Coordinator::HasPausedToLeave(const Member& member) {
  if (member.finished) return true;
  return member.pausing && (!member.started || member.reported >= member.clock);
}

// One that leaves first does the step that it is in: others would have to do it again.
std::vector<uint32_t> Coordinator::WorkersThatStay() const {
  std::vector<uint32_t> ids;
  for (const Member* worker : membership_.OfKind(WORKER)) {
    const bool gone = worker->leaving && (phase_ != RUNNING || rolling_back_ ||
                                          !IsInView(*worker) || HasPausedToLeave(*worker));
    if (!gone) ids.push_back(worker->id);
  }
  return ids;
}

bool Coordinator::MayBeLetGo(const Member& member) const {
  if (!member.leaving || member.let_go || Ended() || !member.unheard.empty()) return false;
  if (!view_.has_value() || rolling_back_) return true;
  if (IsInView(member) || (member.kind == SERVER && HoldsSegments(member))) return false;
  // Nobody asks it for anything any more.
  return EveryoneInView(
      [&](const Member& other) { return other.known_view >= member.left_in_view; });
}

void Coordinator::LetGoOfLeavers() {
  for (const auto& [id, unused] : membership_.members()) {
    Member& member = *membership_.Find(id);
    if (!MayBeLetGo(member)) continue;
    member.let_go = true;
    member.missed = !member.drained && IsWaitedFor(member);
    if (member.missed || !view_.has_value()) continue;
    // Nobody starts another one in its place.
    uint32_t& wanted = member.kind == SERVER ? servers_wanted_ : workers_wanted_;
    if (OthersThatStay(member) < wanted && wanted > 1) --wanted;
  }
}

void Coordinator::AddLeaving(const Member& member, HeartbeatReply& reply) const {
  if (!member.leaving || Ended()) return;
  if (member.let_go) {
    reply.set_leave(true);
    reply.set_replace(member.missed);
  } else if (member.kind == WORKER && phase_ == RUNNING) {
    reply.set_pause(true);
    reply.set_final_version(0);  // known, it would be worked towards
    reply.clear_final_clocks();
  }
}

void Coordinator::OnLeft(const Member& member) {
  AddNotice(absl::StrCat("left ", member.id),
            absl::StrCat(member.Name(), " has left",
                         member.missed ? "; the job waits for another one in its place" : ""));
}

void Coordinator::AddServerStatus(const Member& member, NodeStatus& node) const {
  node.set_draining(member.leaving);
  if (member.kind != SERVER || !view_.has_value()) return;
  node.set_spare(!member.placed);
  const SegmentHolders::Count held = holders_->CountOf(member.id);
  node.set_segments(held.owned);
  node.set_copies(held.copies);
  node.set_copies_missing(held.missing);
}

}  // namespace tug
