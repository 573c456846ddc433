// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/membership/shown_text.h"
#include "proto/process_name.h"

namespace tug {
namespace {

constexpr size_t kMaxHostBytes = 200;

// Lane endpoints are sent to other nodes and shown to users.
bool IsLaneEndpoint(const std::string& text) {
  constexpr size_t kByteLimit = 256;
  return !text.empty() && text.size() <= kByteLimit &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string Member::Name() const { return ProcessName(KindName(kind), name.index); }

std::string Member::Place() const { return absl::StrCat(host, ", pid ", pid); }

std::string Member::NameAndPlace() const { return absl::StrCat(Name(), " (", Place(), ")"); }

void Member::Watch(const HeartbeatRequest& request, absl::Time now) {
  if (request.has_activity()) activity = request.activity();
  if (!request.has_counters()) return;
  counters = request.counters();
  sends.Add(counters, now);
}

absl::StatusOr<uint32_t> Membership::Register(const RegisterRequest& request, absl::Time now) {
  if (request.kind() != SERVER && request.kind() != WORKER) {
    return absl::InvalidArgumentError("a node must register as a server or as a worker");
  }
  for (auto& [id, member] : members_) {
    if (member.incarnation != request.incarnation() || member.kind != request.kind()) continue;
    RETURN_IF_ERROR(SetLanes(member, request));
    member.last_heard = now;
    return id;
  }
  RETURN_IF_ERROR(FindRoom(request, now));
  Member member;
  member.id = next_id_;
  member.kind = request.kind();
  member.host = Shown(request.host(), kMaxHostBytes);
  member.host_id = request.host_id();
  member.pid = request.pid();
  member.incarnation = request.incarnation();
  member.spare = request.kind() == SERVER && request.spare();
  member.last_heard = now;
  RETURN_IF_ERROR(SetLanes(member, request));
  member.name = names_.Give(request.kind(),
                            request.has_index() ? std::optional(request.index()) : std::nullopt);
  members_[next_id_] = member;
  return next_id_++;
}

absl::Status Membership::FindRoom(const RegisterRequest& request, absl::Time now) {
  const std::string kind = KindName(request.kind());
  const bool further =
      request.kind() == SERVER && !closed_ && (request.spare() || open_to_servers_);
  const size_t places = further ? kMaxServers : request.kind() == SERVER ? servers_ : workers_;
  const size_t taken = further ? OfKind(SERVER).size() : CountPlaced(request.kind());
  if (!closed_ && taken < places) {
    StopWaiting(request);
    return absl::OkStatus();
  }
  const std::string nodes = absl::StrCat("(", places, " ", kind, places == 1 ? ")" : "s)");
  const std::string add =
      further ? "Otherwise "
              : absl::StrCat("To add a ", kind, " instead, raise cluster.", kind, "s; otherwise ");
  if (!closed_ && waiting_.MayAskAgain(request.incarnation(), now)) {
    return absl::AbortedError(absl::StrCat(
        "the job is full ", nodes, "; waiting up to ", absl::FormatDuration(waiting_.patience()),
        " for a ", kind, " to be lost or to leave. ", add, "stop this one"));
  }
  StopWaiting(request);
  return absl::ResourceExhaustedError(
      absl::StrCat("the job is full ", nodes, ". ", add, "stop another one first"));
}

bool Membership::Knows(const RegisterRequest& request) const {
  return std::ranges::any_of(members_, [&](const auto& entry) {
    const Member& member = entry.second;
    const auto& lanes = request.lane_endpoints();
    return member.incarnation == request.incarnation() && member.kind == request.kind() &&
           (lanes.empty() || std::ranges::equal(lanes, member.lane_endpoints));
  });
}

absl::Status Membership::SetLanes(Member& member, const RegisterRequest& request) const {
  const std::vector<std::string> endpoints(request.lane_endpoints().begin(),
                                           request.lane_endpoints().end());
  if (endpoints.empty() || endpoints == member.lane_endpoints) return absl::OkStatus();
  if (request.kind() != SERVER) return absl::InvalidArgumentError("a worker has no lanes");
  if (!member.lane_endpoints.empty()) {
    return absl::FailedPreconditionError(
        "the lanes are already registered, at different endpoints");
  }
  if (endpoints.size() != lanes_per_server_) {
    return absl::InvalidArgumentError(absl::StrCat("a server of this job has ", lanes_per_server_,
                                                   " lanes, not ", endpoints.size()));
  }
  for (const std::string& endpoint : endpoints) {
    if (!IsLaneEndpoint(endpoint)) {
      return absl::InvalidArgumentError("a lane's endpoint is empty, too long, or not an address");
    }
  }
  member.lane_endpoints = endpoints;
  return absl::OkStatus();
}

bool Membership::WorkersComplete() const { return CountPlaced(WORKER) >= workers_; }

size_t Membership::CountPlaced(NodeKind kind) const {
  return static_cast<size_t>(std::ranges::count_if(members_, [kind](const auto& entry) {
    return entry.second.kind == kind && !entry.second.spare && !entry.second.leaving;
  }));
}

uint32_t Membership::CountStaying(NodeKind kind, uint32_t but) const {
  return static_cast<uint32_t>(std::ranges::count_if(members_, [kind, but](const auto& entry) {
    return entry.second.kind == kind && entry.first != but && !entry.second.leaving;
  }));
}

void Membership::WantNoneInPlaceOf(const Member& leaver) {
  uint32_t& wanted = leaver.kind == SERVER ? servers_wanted_ : workers_wanted_;
  if (CountStaying(leaver.kind, leaver.id) < wanted && wanted > 1) --wanted;
}

std::vector<uint32_t> Membership::UsableServers(bool spare) const {
  std::vector<uint32_t> ids;
  for (const auto& [id, member] : members_) {
    if (member.kind == SERVER && member.spare == spare && !member.leaving &&
        !member.lane_endpoints.empty()) {
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<uint32_t> Membership::FilledUp(std::vector<uint32_t> servers,
                                           const std::vector<uint32_t>& spares, size_t wanted) {
  for (const uint32_t id : spares) {
    if (servers.size() < wanted) servers.push_back(id);
  }
  std::ranges::sort(servers);
  return servers;
}

std::vector<uint32_t> Membership::FirstServers() const {
  const std::vector<uint32_t> regular = UsableServers(/*spare=*/false);
  const std::vector<uint32_t> spares = UsableServers(/*spare=*/true);
  if (regular.size() < servers_ && regular.size() + spares.size() < servers_ + spare_servers_) {
    return {};
  }
  return FilledUp(regular, spares, servers_);
}

std::vector<uint32_t> Membership::ServersAgain() const {
  std::vector<uint32_t> servers =
      FilledUp(UsableServers(/*spare=*/false), UsableServers(/*spare=*/true), servers_wanted_);
  if (servers.size() < servers_wanted_) servers.clear();
  return servers;
}

void Membership::Remove(uint32_t id) {
  if (const Member* const member = Find(id)) names_.Release(member->kind, member->name.index);
  members_.erase(id);
  OnHeard(id);
}

void Membership::OnHeard(uint32_t id) {
  for (auto& [other, member] : members_) member.unheard.erase(id);
}

bool Membership::IsUnheard(uint32_t id) const {
  return std::ranges::any_of(members_,
                             [id](const auto& entry) { return entry.second.unheard.contains(id); });
}

Member* Membership::Find(uint32_t id) { return const_cast<Member*>(std::as_const(*this).Find(id)); }

const Member* Membership::Find(uint32_t id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

Member* Membership::FindNamed(absl::string_view name) {
  const auto found = std::ranges::find_if(
      members_, [name](const auto& entry) { return entry.second.Name() == name; });
  return found == members_.end() ? nullptr : &found->second;
}

void Membership::ForEach(absl::FunctionRef<void(Member&)> change) {
  for (auto& [id, member] : members_) change(member);
}

std::vector<uint32_t> Membership::Silent(absl::Time now, absl::Duration timeout) const {
  std::vector<uint32_t> silent;
  for (const auto& [id, member] : members_) {
    if (now - member.last_heard > timeout) silent.push_back(id);
  }
  return silent;
}

std::vector<const Member*> Membership::OfKind(NodeKind kind) const {
  std::vector<const Member*> found;
  for (const auto& [id, member] : members_) {
    if (member.kind == kind) found.push_back(&member);
  }
  return found;
}

}  // namespace tug
