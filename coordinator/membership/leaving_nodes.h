// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_LEAVING_NODES_H_
#define TUG_COORDINATOR_MEMBERSHIP_LEAVING_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/membership/actions.h"
#include "coordinator/membership/job_stage.h"
#include "coordinator/membership/job_views.h"
#include "coordinator/membership/membership.h"

namespace tug {

class DrainReply;

// Nodes that leave a job in order, because they were drained or asked to: decides whether the job
// can continue without them, when they are released, and whether they must be replaced. Their state
// is in Member. Not thread-safe.
class LeavingNodes {
 public:
  // REQUIRES: all arguments outlive this object.
  LeavingNodes(const JobConfig& config, const JobStage& stage, const JobViews& views,
               Membership& membership, ActionQueue& actions)
      : config_(config), stage_(stage), views_(views), membership_(membership), actions_(actions) {}

  // Errors: FAILED_PRECONDITION: why the job cannot continue without the member, given that a
  // drained node is not replaced.
  absl::Status MayBeDrained(const Member& member) const;
  // Starts the member's departure; returns the reply to the drain request.
  DrainReply Drain(Member& member);
  // Applies a heartbeat's request to leave. Wants: whether Absorb would have an effect.
  void Absorb(Member& member, const HeartbeatRequest& request);
  bool Wants(const Member& member, const HeartbeatRequest& request) const;
  // Releases leaving nodes that no other node needs: replies to their heartbeats carry `leave` from
  // now on. Decides now whether each must be replaced (`replace`).
  void LetGo();
  void AddTo(const Member& member, HeartbeatReply& reply) const;
  void OnLeft(const Member& member);

  // Workers that keep or get virtual workers, ascending.
  std::vector<uint32_t> WorkersThatStay() const;
  // Number of nodes of a kind that a rollback needs.
  uint32_t NeededToRollBack(NodeKind kind) const;

 private:
  absl::Status MayLeave(const Member& member) const;
  void Begin(Member& member);
  // Whether the job, which waits for nodes or has no other one of this kind, needs a replacement.
  bool IsWaitedFor(const Member& member) const;
  // Whether it is leaving, holds nothing that other nodes need, and the staying nodes are alive.
  bool MayBeLetGo(const Member& member) const;

  const JobConfig& config_;
  const JobStage& stage_;
  const JobViews& views_;
  Membership& membership_;
  ActionQueue& actions_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_LEAVING_NODES_H_
