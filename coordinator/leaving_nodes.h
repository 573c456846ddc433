#ifndef TUG_COORDINATOR_LEAVING_NODES_H_
#define TUG_COORDINATOR_LEAVING_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/actions.h"
#include "coordinator/job_stage.h"
#include "coordinator/job_views.h"
#include "coordinator/membership.h"

namespace tug {

class DrainReply;

// Nodes that leave a job in order, since they were drained or ask to: whether the job can go on
// without them, when they are told to go, and whether others are to be started in their place. What
// is known of each is in its Member. Not thread-safe.
class LeavingNodes {
 public:
  // All outlive it.
  LeavingNodes(const JobConfig& config, const JobStage& stage, const JobViews& views,
               Membership& membership, ActionQueue& actions)
      : config_(config), stage_(stage), views_(views), membership_(membership), actions_(actions) {}

  // Errors: FAILED_PRECONDITION, why the job cannot go on without the member; of one that is
  // drained, in whose place nobody starts another.
  absl::Status MayBeDrained(const Member& member) const;
  // The member is about to leave, and what is told to who drained it.
  DrainReply Drain(Member& member);
  // What a heartbeat says of it; and whether Absorb would make anything of that.
  void Absorb(Member& member, const HeartbeatRequest& request);
  bool Wants(const Member& member, const HeartbeatRequest& request) const;
  // From now on heartbeats of those that nobody needs any more are answered with `leave`; whether
  // another one is to be started in the place of each is decided now.
  void LetGo();
  void AddTo(const Member& member, HeartbeatReply& reply) const;
  void OnLeft(const Member& member);

  // Workers that are to carry virtual workers, ascending.
  std::vector<uint32_t> WorkersThatStay() const;
  // How many of a kind the job needs to go back to a checkpoint.
  uint32_t NeededToRollBack(NodeKind kind) const;

 private:
  absl::Status MayLeave(const Member& member) const;
  void Begin(Member& member);
  // Whether the job waits for nodes, and for another one should this one go.
  bool IsWaitedFor(const Member& member) const;
  // It wants to go, has nothing left that anybody lacks, and those that are to stay are there.
  bool MayBeLetGo(const Member& member) const;

  const JobConfig& config_;
  const JobStage& stage_;
  const JobViews& views_;
  Membership& membership_;
  ActionQueue& actions_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_LEAVING_NODES_H_
