// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_MEMBERSHIP_H_
#define TUG_COORDINATOR_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/membership/node_names.h"
#include "coordinator/membership/send_rates.h"
#include "coordinator/membership/waiting_nodes.h"
#include "proto/control.pb.h"

namespace tug {

// State of one node, as known to the coordinator.
struct Member {
  uint32_t id = 0;
  NodeKind kind = NODE_KIND_UNKNOWN;
  NodeName name;
  std::string host;
  uint64_t host_id = 0;  // RegisterRequest.host_id
  uint32_t pid = 0;
  uint64_t incarnation = 0;
  std::vector<std::string> lane_endpoints;  // servers; empty until lanes are bound
  bool spare = false;                       // servers: standby until a slot is free
  absl::Time last_heard;

  // From its heartbeats.
  uint32_t known_view = 0;
  bool ready = false;
  bool started = false;
  uint64_t clock = 0;
  bool pausing = false;
  bool finished = false;
  NodeCounters counters;
  std::string metrics_endpoint;
  bool trace_sent = false;
  bool trace_refused = false;   // a chunk of its trace was rejected
  uint32_t schedule = 0;        // number of the newest schedule it has adopted
  NodeCounters ready_counters;  // from the heartbeat that reported ready

  bool told_of_end = false;

  // For display; no decision depends on it.
  NodeActivity activity;  // of its newest heartbeat
  SendRates sends;
  std::optional<StepReport> newest;  // workers: a report of its latest step that was not skipped

  bool placed = false;  // servers: in the placement of segments
  // Drained, or asked to leave: it is released once its data has moved to other nodes.
  bool leaving = false;
  bool drained = false;
  // Staying nodes of its kind that have sent no heartbeat since it began to leave: they may be lost
  // already. It is released only when this is empty.
  std::set<uint32_t> unheard;
  bool let_go = false;  // released: replies tell it to leave
  // It asked to leave by itself and the job needed its slot filled when it was released: it must be
  // replaced.
  bool missed = false;
  uint32_t left_in_view = 0;         // first view without it
  std::optional<uint64_t> reported;  // workers: latest clock of its step reports

  // "server-1"
  std::string Name() const;
  // "host, pid 123"
  std::string Place() const;
  // "server-1 (host, pid 123)"
  std::string NameAndPlace() const;
  // Reads the display-only fields of a heartbeat.
  void Watch(const HeartbeatRequest& request, absl::Time now);
};

// Members of a job. Until Close, servers and workers join up to the configured numbers; a node that
// is lost or leaves frees its slot and its name. Spare servers join in addition, and further
// servers after OpenToServers. A node that finds the job full may wait for a while: the node it
// replaces may not have been declared lost yet. Not thread-safe.
class Membership {
 public:
  static constexpr size_t kMaxServers = 512;  // including spares

  // A node waits for a slot this much longer than the failure timeout. A launcher may start a
  // replacement before it knows that the old node is dead: on an unreachable host, `tug attend`
  // ends that within 7 s.
  static constexpr absl::Duration kEndsMeanwhile = absl::Seconds(10);

  // `failure_timeout`: a node silent for longer is lost.
  Membership(const ClusterConfig& cluster, absl::Duration failure_timeout)
      : servers_(cluster.servers()),
        spare_servers_(cluster.spare_servers()),
        workers_(cluster.workers()),
        servers_wanted_(servers_),
        workers_wanted_(workers_),
        lanes_per_server_(cluster.lanes_per_server()),
        waiting_(failure_timeout + kEndsMeanwhile) {}

  // Registers a node; repeats return the same member (same incarnation) or add its lanes'
  // endpoints. Errors: ABORTED (full, but a slot may become free: retry), RESOURCE_EXHAUSTED (full,
  // and no slot becomes free, or the node has waited long enough), INVALID_ARGUMENT (no kind,
  // malformed endpoints), FAILED_PRECONDITION (lanes registered twice, differently).
  absl::StatusOr<uint32_t> Register(const RegisterRequest& request, absl::Time now);

  // Whether registering this would change nothing.
  bool Knows(const RegisterRequest& request) const;

  // Servers that the job starts with, ascending: all regular ones once they have registered their
  // lanes; or, once all servers and spares of the job have, with spares for missing regular ones.
  // Empty: some are missing.
  std::vector<uint32_t> FirstServers() const;
  // Servers that the job resumes with after an interruption: all regular ones, and spares up to
  // wanted(). Empty: too few.
  std::vector<uint32_t> ServersAgain() const;
  // Whether as many workers have joined as configured.
  bool WorkersComplete() const;

  // Number of nodes of a kind that the job waits for after an interruption (workers: with WAIT).
  // Spares get a slot up to this number.
  uint32_t wanted(NodeKind kind) const {
    return kind == SERVER ? servers_wanted_ : workers_wanted_;
  }
  // Lowers wanted() for a node that leaves in order and is not replaced. wanted() never grows
  // again: a node that joins may replace one whose loss is not known yet.
  void WantNoneInPlaceOf(const Member& leaver);

  // Forgets a node that was told to retry and no longer needs to.
  void StopWaiting(const RegisterRequest& request) { waiting_.Remove(request.incarnation()); }
  // Whether a node keeps asking for a slot.
  bool SomebodyWaits(absl::Time now) const { return waiting_.SomebodyAsks(now); }

  // From now on no node joins, not even in a freed slot.
  void Close() { closed_ = true; }
  // From now on servers may join beyond the configured number.
  void OpenToServers() { open_to_servers_ = true; }

  // nullptr: not a member.
  Member* Find(uint32_t id);
  const Member* Find(uint32_t id) const;
  // By name, "worker-0"; nullptr: no member has it.
  Member* FindNamed(absl::string_view name);
  void ForEach(absl::FunctionRef<void(Member&)> change);
  void Remove(uint32_t id);
  // Records a heartbeat of this member: leaving nodes no longer wait for it (Member::unheard).
  void OnHeard(uint32_t id);
  bool IsUnheard(uint32_t id) const;
  // Members without a heartbeat for longer than `timeout`.
  std::vector<uint32_t> Silent(absl::Time now, absl::Duration timeout) const;

  // Ordered by id.
  const std::map<uint32_t, Member>& members() const { return members_; }
  std::vector<const Member*> OfKind(NodeKind kind) const;
  // Number of members of a kind that are not leaving, excluding node `but`.
  uint32_t CountStaying(NodeKind kind, uint32_t but = 0) const;

 private:
  absl::Status SetLanes(Member& member, const RegisterRequest& request) const;
  absl::Status FindRoom(const RegisterRequest& request, absl::Time now);
  // Number of members of a kind that fill a slot: neither spare nor leaving.
  size_t CountPlaced(NodeKind kind) const;
  // Servers with lanes that are not leaving.
  std::vector<uint32_t> UsableServers(bool spare) const;
  static std::vector<uint32_t> FilledUp(std::vector<uint32_t> servers,
                                        const std::vector<uint32_t>& spares, size_t wanted);

  const uint32_t servers_;
  const uint32_t spare_servers_;
  const uint32_t workers_;
  uint32_t servers_wanted_;
  uint32_t workers_wanted_;
  const uint32_t lanes_per_server_;
  bool closed_ = false;
  bool open_to_servers_ = false;
  WaitingNodes waiting_;
  uint32_t next_id_ = 1;
  NodeNames names_;
  std::map<uint32_t, Member> members_;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_MEMBERSHIP_H_
