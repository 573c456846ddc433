// SPDX-License-Identifier: Apache-2.0
// Describes what a job that makes no progress waits for.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/coordinator.h"

namespace tug {
namespace {

std::string Counted(uint64_t count, NodeKind kind) {
  return absl::StrCat(count, " ", KindName(kind), count == 1 ? "" : "s");
}

// "1 server and 2 workers to join"; empty: none is missing.
std::string ToJoin(uint64_t servers, uint64_t workers) {
  std::vector<std::string> missing;
  if (servers > 0) missing.push_back(Counted(servers, SERVER));
  if (workers > 0) missing.push_back(Counted(workers, WORKER));
  return missing.empty() ? "" : absl::StrCat(absl::StrJoin(missing, " and "), " to join");
}

uint64_t Lacking(uint64_t wanted, uint64_t there) { return wanted > there ? wanted - there : 0; }

// Remedy for missing nodes; empty if a launcher starts them.
std::string Remedy(const CoordinatorOptions& options) {
  return options.launched ? "" : "; start missing nodes with tug server and tug worker";
}

WaitReason WaitsToBegin(const CoordinatorOptions& options, const Membership& membership) {
  const ClusterConfig& cluster = options.config.cluster();
  const auto usable = [](const Member* server) { return !server->lane_endpoints.empty(); };
  const auto there =
      static_cast<uint64_t>(std::ranges::count_if(membership.OfKind(SERVER), usable));
  const std::string missing = ToJoin(membership.FirstServers().empty()
                                         ? std::max<uint64_t>(1, Lacking(cluster.servers(), there))
                                         : 0,
                                     Lacking(cluster.workers(), membership.OfKind(WORKER).size()));
  return {WaitReason::Kind::kMembers, missing,
          absl::StrCat("the job then starts", Remedy(options))};
}

WaitReason WaitsToRollBack(const CoordinatorOptions& options, const JobCheckpoints& checkpoints,
                           const LeavingNodes& leaving, const Membership& membership) {
  const std::string goes_back = absl::StrCat("the job then rolls back to the checkpoint of step ",
                                             checkpoints.committed_version());
  if (checkpoints.AwaitsResiduals()) {
    return {WaitReason::Kind::kCommit, "residuals that workers are writing for a checkpoint",
            absl::StrCat("up to fault.failure_timeout_ms; ", goes_back)};
  }
  if (const auto committing = checkpoints.committing()) {
    return {WaitReason::Kind::kCommit, absl::StrCat("the checkpoint of step ", *committing),
            "it is being committed"};
  }
  const auto lacking = [&leaving](NodeKind kind, uint64_t there) {
    return Lacking(leaving.NeededToRollBack(kind), there);
  };
  const uint64_t servers =
      membership.ServersAgain().empty()
          ? std::max<uint64_t>(1, lacking(SERVER, membership.CountStaying(SERVER)))
          : 0;
  return {WaitReason::Kind::kMembers,
          ToJoin(servers, lacking(WORKER, leaving.WorkersThatStay().size())),
          absl::StrCat(goes_back, Remedy(options))};
}

// "server-0, worker-2"
std::string NotReady(const JobViews& views, const Membership& membership) {
  constexpr size_t kMaxNamed = 4;
  std::vector<std::string> names;
  size_t others = 0;
  for (const auto& [id, member] : membership.members()) {
    if (member.ready || !views.Includes(member)) continue;
    if (names.size() == kMaxNamed) {
      ++others;
    } else {
      names.push_back(member.Name());
    }
  }
  if (others > 0) names.push_back(absl::StrCat(others, " more"));
  return absl::StrJoin(names, ", ");
}

}  // namespace

std::optional<WaitReason> Coordinator::WaitsFor() const {
  using Kind = WaitReason::Kind;
  if (stage_.ended()) return std::nullopt;
  if (!views_.begun()) return WaitsToBegin(options_, membership_);
  if (stage_.rolling_back()) return WaitsToRollBack(options_, checkpoints_, leaving_, membership_);
  if (phase() == WAITING) {
    return WaitReason{Kind::kReady, absl::StrCat(NotReady(views_, membership_), " to be ready"),
                      "they load weights and data; a node without a heartbeat for "
                      "fault.failure_timeout_ms is lost"};
  }
  if (views_.places().fencing()) {
    return WaitReason{Kind::kView, absl::StrCat("servers to adopt view ", views_.places().number()),
                      "a server without a heartbeat for fault.failure_timeout_ms is lost"};
  }
  if (!views_.EveryVirtualWorkerIsCarried()) {
    return WaitReason{Kind::kMembers, ToJoin(0, 1),
                      absl::StrCat("some virtual workers have no worker", Remedy(options_))};
  }
  const uint64_t last = timeline_->LastStep();
  if (timeline_->progress.step() < last) return std::nullopt;
  return WaitReason{Kind::kEnd,
                    absl::StrCat("the last evaluation and the checkpoint of step ", last),
                    "the job then ends"};
}

void Coordinator::SeeWait(absl::Time now, WaitWatch& wait) const {
  wait.See(WaitsFor(), timeline_->progress.step(), timeline_->progress.seconds_per_step(), now);
}

void Coordinator::AddWait(absl::Time now, StatusReply& reply) const {
  WaitWatch wait = wait_;
  SeeWait(now, wait);
  if (!wait.reason().has_value() || stage_.ended()) return;
  reply.mutable_wait()->set_what(wait.reason()->what);
  reply.mutable_wait()->set_ends(wait.reason()->ends);
  reply.mutable_wait()->set_seconds(absl::ToDoubleSeconds(now - wait.since()));
}

}  // namespace tug
