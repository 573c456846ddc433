// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/job_views.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/placement_mode.h"
#include "config/sync_mode.h"
#include "coordinator/placement/host_pairs.h"
#include "coordinator/placement/mixed_shares.h"

namespace tug {
namespace {

// "server-1 serves", "server-1, server-2 and server-3 serve"
std::string Serve(const std::vector<uint32_t>& servers, const Membership& membership) {
  std::vector<std::string> names;
  names.reserve(servers.size());
  for (const uint32_t id : servers) names.push_back(membership.members().at(id).Name());
  if (names.size() == 1) return absl::StrCat(names[0], " serves");
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", last, " serve");
}

}  // namespace

std::string SegmentsText(uint32_t count) {
  return absl::StrCat(count, " segment", count == 1 ? "" : "s");
}

JobViews::JobViews(const JobConfig& config, Membership& membership, ActionQueue& actions)
    : config_(config),
      membership_(membership),
      actions_(actions),
      places_({.virtual_workers = config.cluster().virtual_workers(),
               .workers = config.cluster().workers(),
               .on_worker_loss = config.fault().on_worker_loss()}) {}

void JobViews::BeginTimeline(const Timeline& timeline, const BlockLayout& layout,
                             const std::vector<uint32_t>& workers,
                             const std::vector<uint32_t>& servers) {
  places_.BeginTimeline(workers, servers);
  BeginHolders(layout, servers);
  view_.emplace();
  view_->set_timeline(timeline.start.number);
  view_->set_start_version(timeline.start.version);
  view_->set_restore_path(timeline.start.restore_path);
  *view_->mutable_blocks() = layout.blocks;
  FillPlacement(*view_);
  timeline_view_ = places_.number();
  SetPlaces(timeline.StartClocks());
}

void JobViews::BeginHolders(const BlockLayout& layout, const std::vector<uint32_t>& servers) {
  membership_.ForEach([&servers](Member& member) {
    member.placed = std::ranges::find(servers, member.id) != servers.end();
  });
  holders_.emplace(
      SegmentHolders::Options{.segment_bytes = layout.segment_bytes,
                              .replicas = config_.sync().replicas(),
                              .lanes_per_server = config_.cluster().lanes_per_server()});
  holders_->Begin(servers, WeightsOf(servers));
  holders_->SetPlacement(places_.number());
  placement_pending_ = copies_were_lost_ = false;
}

// Weights in proportion to which servers own segments; empty: equal.
std::vector<uint32_t> JobViews::WeightsOf(const std::vector<uint32_t>& servers) const {
  const std::vector<const Member*> workers = membership_.OfKind(WORKER);
  if (config_.placement().kind() != PlacementConfig::MIXED || workers.empty()) return {};
  std::vector<uint64_t> server_hosts, worker_hosts;
  for (const uint32_t id : servers) server_hosts.push_back(membership_.members().at(id).host_id);
  for (const Member* worker : workers) worker_hosts.push_back(worker->host_id);
  return MixedWeights(server_hosts, worker_hosts);
}

void JobViews::FillPlacement(View& view) const {
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
    lane->set_server(server.Name());
  }
  const std::vector<uint32_t> owners = holders_->Owners();
  view.mutable_lane_of_segment()->Assign(owners.begin(), owners.end());
  for (const std::vector<uint32_t>& entry : holders_->Copies()) {
    view.add_copies()->mutable_lane_of_segment()->Assign(entry.begin(), entry.end());
  }
}

void JobViews::SetPlaces(const std::vector<uint64_t>& start_clocks) {
  view_->set_number(places_.number());
  view_->clear_workers();
  for (const Member* worker : membership_.OfKind(WORKER)) {
    WorkerAssignment place;
    place.set_node_id(worker->id);
    place.set_host_id(worker->host_id);
    place.set_name(worker->Name());
    for (uint32_t v = 0; v < start_clocks.size(); ++v) {
      if (places_.owners()[v] != worker->id) continue;
      place.add_virtual_workers(v);
      place.add_start_clocks(start_clocks[v]);
    }
    if (place.virtual_workers_size() > 0) *view_->add_workers() = std::move(place);
  }
  if (AllReduces(config_)) PairWithServers();
}

void JobViews::PairWithServers() {
  const auto hosted = [&](uint32_t id) {
    return HostedNode{id, membership_.members().at(id).host_id};
  };
  std::vector<HostedNode> workers, servers;
  for (const WorkerAssignment& place : view_->workers()) workers.push_back(hosted(place.node_id()));
  for (const uint32_t id : holders_->Servers()) servers.push_back(hosted(id));
  const std::vector<uint32_t> beside = PairHosts(workers, servers);
  for (size_t i = 0; i < beside.size(); ++i) {
    view_->mutable_workers(static_cast<int>(i))->set_server_node_id(beside[i]);
  }
}

// ---- the next view ----

void JobViews::Change(const std::vector<uint32_t>& workers, bool stop_requested) {
  ChangeServers();
  for (const Member* worker : membership_.OfKind(WORKER)) {
    if (worker->leaving) places_.SetLeaving(worker->id);
  }
  places_.SetWanted(membership_.wanted(WORKER));
  places_.SetWorkers(workers, stop_requested);
  if (holders_->changed()) {
    places_.SetServers(holders_->Servers());
    PrepareNextView();
  } else if (placement_pending_ && next_view_.number() != places_.number()) {
    PrepareNextView();  // another change began before this one was settled
  }
}

void JobViews::ChangeServers() {
  const uint32_t replicas = config_.sync().replicas();
  if (copies_were_lost_ && holders_->AtRisk() == 0) {
    copies_were_lost_ = false;
    actions_.AddNotice(absl::StrCat("copies ", number()),
                       absl::StrCat("all segments have ", replicas, " copies again"));
  }
  if (!MovesSegments()) return;
  // If all workers have finished, only the last checkpoint is pending: a change would force lanes
  // to write it again.
  const bool over = view_->workers_size() > 0 && Everyone([](const Member& node) {
                      return node.kind == SERVER || node.finished;
                    });
  if (!over) GivePlaces();
  std::vector<uint32_t> staying, all;
  for (const Member* server : membership_.OfKind(SERVER)) {
    if (!server->placed) continue;
    all.push_back(server->id);
    if (!server->leaving) staying.push_back(server->id);
  }
  // All servers that took over from leaving ones may have been lost.
  const std::vector<uint32_t>& servers = staying.empty() ? all : staying;
  holders_->SetServers(servers, WeightsOf(servers));
  if (!places_.fencing() && !over) holders_->NextStep();
}

void JobViews::GivePlaces() {
  uint32_t placed = 0;
  for (const Member* server : membership_.OfKind(SERVER)) {
    placed += server->placed && !server->leaving ? 1 : 0;
  }
  for (const bool spares : {false, true}) {
    membership_.ForEach([&](Member& server) {
      if (server.placed || server.leaving || server.lane_endpoints.empty()) return;
      if (server.spare != spares || (spares && placed >= membership_.wanted(SERVER))) return;
      server.placed = true;
      ++placed;
      actions_.AddNotice(
          absl::StrCat("place ", server.id),
          absl::StrCat(server.NameAndPlace(), spares ? " fills a free server slot" : " has joined",
                       ", and receives its share of the segments"));
    });
  }
}

void JobViews::PrepareNextView() {
  holders_->SetPlacement(places_.number());
  placement_pending_ = true;
  next_view_.Clear();
  next_view_.set_number(places_.number());
  next_view_.set_timeline(view_->timeline());
  next_view_.set_start_version(view_->start_version());
  *next_view_.mutable_blocks() = view_->blocks();
  FillPlacement(next_view_);
}

bool JobViews::Issue() {
  const bool moved = std::exchange(placement_pending_, false);
  if (moved) {
    view_->mutable_lanes()->Swap(next_view_.mutable_lanes());
    view_->mutable_lane_of_segment()->Swap(next_view_.mutable_lane_of_segment());
    view_->mutable_copies()->Swap(next_view_.mutable_copies());
    view_->set_placement(next_view_.placement());
  }
  SetPlaces(places_.start_clocks());
  membership_.ForEach([this](Member& member) {
    member.ready = member.pausing = member.finished = false;
    if (Includes(member)) {
      member.left_in_view = 0;
    } else if (member.left_in_view == 0) {
      member.left_in_view = number();
    }
  });
  return moved;
}

void JobViews::AddReport(const Member& server, const HeartbeatRequest& request) {
  if (server.kind != SERVER) return;
  if (holders_.has_value()) holders_->AddReport(server.id, request.copied_placement());
  places_.AddClocks(server.id, request.clocks_of_view(),
                    {request.clocks().data(), static_cast<size_t>(request.clocks_size())});
}

void JobViews::KeepNews(const Member& member, HeartbeatRequest& request) const {
  if (!holders_.has_value() || !holders_->Wants(member.id, request.copied_placement())) {
    request.clear_copied_placement();
  }
  if (member.kind != SERVER || !places_.fencing() || request.clocks_of_view() != places_.number()) {
    request.clear_clocks();
    request.clear_clocks_of_view();
  }
}

bool JobViews::OutlivesServer(const Member& server, const std::string& lost) {
  if (!MovesSegments()) return false;
  const bool copied = config_.sync().replicas() > 1;
  const SegmentHolders::Count held = holders_->CountOf(server.id);
  const SegmentHolders::Removal removal = holders_->RemoveServer(server.id);
  const std::string key = absl::StrCat("lost ", server.id);
  if (removal.orphans > 0) {
    if (copied) {
      actions_.AddNotice(absl::StrCat(key, " alone"),
                         absl::StrCat(server.NameAndPlace(), " had the only complete copy of ",
                                      SegmentsText(removal.orphans)));
    }
    return false;
  }
  if (removal.owned > 0) {
    actions_.AddNotice(key, absl::StrCat(lost, "; ", Serve(removal.successors, membership_),
                                         removal.owned == 1 ? " the replica" : " the replicas",
                                         " of its ", SegmentsText(removal.owned)));
  } else {
    actions_.AddNotice(key, absl::StrCat(lost, "; it held replicas only, no data is lost"));
  }
  copies_were_lost_ |= copied && removal.owned + held.copies > held.missing;
  return true;
}

// ---- the newest view ----

bool JobViews::Includes(const Member& member) const {
  if (member.kind == SERVER) {
    return std::ranges::any_of(
        view_->lanes(), [&](const Lane& lane) { return lane.server_node_id() == member.id; });
  }
  return std::ranges::any_of(view_->workers(), [&](const WorkerAssignment& place) {
    return place.node_id() == member.id;
  });
}

bool JobViews::Everyone(absl::FunctionRef<bool(const Member&)> holds) const {
  return std::ranges::all_of(membership_.members(), [&](const auto& entry) {
    return !Includes(entry.second) || holds(entry.second);
  });
}

uint32_t JobViews::ScheduleOfServers() const {
  uint32_t schedule = std::numeric_limits<uint32_t>::max();
  for (const Member* server : membership_.OfKind(SERVER)) {
    if (Includes(*server)) schedule = std::min(schedule, server->schedule);  // others are standby
  }
  return schedule;
}

std::vector<uint32_t> JobViews::Carriers() const {
  std::vector<uint32_t> carriers(places_.owners().size(), ViewChange::kNobody);
  for (const WorkerAssignment& place : view_->workers()) {
    for (const uint32_t v : place.virtual_workers()) carriers[v] = place.node_id();
  }
  return carriers;
}

std::vector<std::optional<uint64_t>> JobViews::CarriersClocks() const {
  std::vector<std::optional<uint64_t>> clocks;
  for (const uint32_t id : Carriers()) {
    const Member* const worker = membership_.Find(id);
    clocks.push_back(worker != nullptr && worker->started ? std::optional(worker->clock)
                                                          : std::nullopt);
  }
  return clocks;
}

// With SHRINK some virtual workers need no owner, as long as one has one.
bool JobViews::EveryVirtualWorkerIsCarried() const {
  if (places_.fencing()) return false;
  const auto carried = [](uint32_t owner) { return owner != ViewChange::kNobody; };
  if (config_.fault().on_worker_loss() == FaultConfig::SHRINK) {
    return std::ranges::any_of(places_.owners(), carried);
  }
  return std::ranges::all_of(places_.owners(), carried);
}

// A virtual worker whose owner is lost, or that has none, does not hold up a checkpoint.
std::vector<bool> JobViews::Carried() const {
  std::vector<bool> carried;
  for (const uint32_t owner : places_.owners()) {
    carried.push_back(membership_.Find(owner) != nullptr);
  }
  return carried;
}

// A log of updates belongs to lanes that keep their segments; a gradient that its worker has freed
// cannot be pushed to another lane.
bool JobViews::MovesSegments() const {
  return ContinuesWithoutNode(config_) && config_.sync().record() != SyncConfig::ORDER &&
         !PlacementModeOf(config_).frees_gradients;
}

bool JobViews::HoldsSegments(const Member& member) const {
  if (!holders_.has_value()) return false;
  const std::vector<uint32_t> servers = holders_->Servers();
  return std::ranges::find(servers, member.id) != servers.end();
}

uint32_t JobViews::OwnedSegments(const Member& member) const {
  return holders_.has_value() ? holders_->CountOf(member.id).owned : 0;
}

// ---- replies and status ----

void JobViews::AddView(const Member& member, uint32_t known_view, HeartbeatReply& reply) const {
  if (known_view < number() && Includes(member)) *reply.mutable_view() = *view_;
}

void JobViews::AddNextView(const Member& member, HeartbeatReply& reply) const {
  if (!places_.fencing() || member.kind != SERVER || !HoldsSegments(member)) return;
  View& next = *reply.mutable_next_view();
  if (placement_pending_) next = next_view_;
  next.set_number(places_.number());
  next.set_timeline(view_->timeline());
  if (!placement_pending_) next.set_placement(view_->placement());
}

void JobViews::AddStatus(StatusReply& reply) const {
  reply.set_view(number());
  if (!begun()) return;
  reply.set_segments(static_cast<uint32_t>(view_->lane_of_segment_size()));
  reply.set_segments_at_risk(holders_->AtRisk());
  for (const BlockSpec& block : view_->blocks().blocks()) reply.add_block_names(block.name());
}

void JobViews::AddStatus(const Member& member, NodeStatus& node) const {
  if (!begun()) return;
  for (const WorkerAssignment& place : view_->workers()) {
    if (place.node_id() == member.id) *node.mutable_virtual_workers() = place.virtual_workers();
  }
  AddRank(member, node);
  if (member.kind != SERVER) return;
  node.set_spare(!member.placed);
  const SegmentHolders::Count held = holders_->CountOf(member.id);
  node.set_segments(held.owned);
  node.set_copies(held.copies);
  node.set_copies_missing(held.missing);
}

// Ranks are the workers of the view in their order (ReducingLanes), each with its server.
void JobViews::AddRank(const Member& member, NodeStatus& node) const {
  if (!AllReduces(config_)) return;
  for (int rank = 0; rank < view_->workers_size(); ++rank) {
    const WorkerAssignment& place = view_->workers(rank);
    const uint32_t one = member.kind == SERVER ? place.server_node_id() : place.node_id();
    if (one == member.id) node.set_all_reduce_rank(static_cast<uint32_t>(rank));
  }
}

}  // namespace tug
