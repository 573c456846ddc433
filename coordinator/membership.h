#ifndef TUG_COORDINATOR_MEMBERSHIP_H_
#define TUG_COORDINATOR_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/waiting_nodes.h"
#include "proto/control.pb.h"

namespace tug {

// What the coordinator knows of one node.
struct Member {
  uint32_t id = 0;
  NodeKind kind = NODE_KIND_UNKNOWN;
  std::string host;
  uint64_t host_id = 0;  // RegisterRequest.host_id
  uint32_t pid = 0;
  uint64_t incarnation = 0;
  std::vector<std::string> lane_endpoints;  // servers; empty until lanes are bound
  bool spare = false;                       // servers: stands by until there is a place
  absl::Time last_heard;

  // From its newest heartbeat.
  uint32_t known_view = 0;
  bool ready = false;
  bool started = false;
  uint64_t clock = 0;
  bool pausing = false;
  bool finished = false;
  NodeCounters counters;
  std::string metrics_endpoint;
  bool trace_sent = false;
  bool trace_refused = false;   // a part of it
  uint32_t schedule = 0;        // number of the newest that it has taken
  NodeCounters ready_counters;  // of the heartbeat that said it was ready

  bool told_of_end = false;

  // For people who watch; nothing is decided by it.
  NodeActivity activity;              // of its newest heartbeat
  double sent_bytes_per_second = 0;   // given to sockets, over about a second
  std::optional<absl::Time> counted;  // when that was told last, and what had been sent by then
  uint64_t counted_bytes = 0;
  std::optional<StepReport> newest;  // workers: a report of the latest step that it took

  bool placed = false;  // servers: is to hold a part of the segments
  // Drained, or wants to go: what it has goes to others, then it is told to.
  bool leaving = false;
  bool drained = false;
  // Of its kind, those that were to stay when it began to leave, and have not been heard of since:
  // they may be lost already. It is not let go before.
  std::set<uint32_t> unheard;
  bool let_go = false;  // it is told to leave
  // It asked to go by itself, and the job waited for it when it was let go: another one is to be
  // started in its place.
  bool missed = false;
  uint32_t left_in_view = 0;         // the first one without it
  std::optional<uint64_t> reported;  // workers: the latest clock of its step reports

  // "server 2 (host, pid 123)"
  std::string Name() const;
  // What a heartbeat says for people who watch.
  void Watch(const HeartbeatRequest& request, absl::Time now);
};

// Who is in the job. Until it is closed, servers and workers join up to the numbers asked for, and
// one that is lost or leaves gives up its place. Spare servers join beside them; further servers
// too, once it is open to them. Who finds it full may wait for a while: the one whose place it is
// to take may not be missed yet. Not thread-safe.
class Membership {
 public:
  static constexpr size_t kMostServers = 512;  // spare ones included

  // How much longer than a node may be silent one waits for a place. Whoever starts a node in place
  // of another need not know that the other is dead: on a host that cannot be reached, `tug attend`
  // ends it within 7 s.
  static constexpr absl::Duration kEndsMeanwhile = absl::Seconds(10);

  // `failure_timeout`: what a node that is silent for longer is lost by.
  Membership(const ClusterConfig& cluster, absl::Duration failure_timeout)
      : servers_(cluster.servers()),
        spare_servers_(cluster.spare_servers()),
        workers_(cluster.workers()),
        servers_wanted_(servers_),
        workers_wanted_(workers_),
        lanes_per_server_(cluster.lanes_per_server()),
        waiting_(failure_timeout + kEndsMeanwhile) {}

  // A node joins, or joins again (same incarnation: same member), or adds its lanes' endpoints.
  // Errors: ABORTED (full, but a place may become free: ask again), RESOURCE_EXHAUSTED (full, and
  // no place becomes free, or it has waited for one long enough), INVALID_ARGUMENT (no kind,
  // malformed endpoints), FAILED_PRECONDITION (lanes registered twice, differently).
  absl::StatusOr<uint32_t> Register(const RegisterRequest& request, absl::Time now);

  // Whether to register so would change nothing.
  bool Knows(const RegisterRequest& request) const;

  // The servers that a job begins with, ascending: those that are no spares, once they are all
  // there with their lanes; or spares in place of some, once all servers are there that the job
  // was given. Empty: some are missing.
  std::vector<uint32_t> FirstServers() const;
  // Those that it goes on with after it was interrupted: all that are no spares, and spares up to
  // wanted(). Empty: there are not so many.
  std::vector<uint32_t> ServersAgain() const;
  // As many workers are in as were asked for.
  bool WorkersComplete() const;

  // How many nodes of a kind the job waits for after it was interrupted (workers: with WAIT).
  // Spares are given a place up to this number.
  uint32_t wanted(NodeKind kind) const {
    return kind == SERVER ? servers_wanted_ : workers_wanted_;
  }
  // One leaves in order, and nobody starts another in its place. They do not grow again: who joins
  // may come in place of a node whose loss is not known yet.
  void WantNoneInPlaceOf(const Member& leaver);

  // This one, told to ask again, need not any more.
  void StopWaiting(const RegisterRequest& request) { waiting_.Remove(request.incarnation()); }
  // Whether somebody asks again and again.
  bool SomebodyWaits(absl::Time now) const { return waiting_.SomebodyAsks(now); }

  // From now on a place given up stays empty: nobody joins.
  void Close() { closed_ = true; }
  // From now on servers may join beyond the number asked for.
  void OpenToServers() { open_to_servers_ = true; }

  // nullptr: not a member.
  Member* Find(uint32_t id);
  const Member* Find(uint32_t id) const;
  void ForEach(absl::FunctionRef<void(Member&)> change);
  void Remove(uint32_t id);
  // A heartbeat of this member has come, and somebody who leaves waited for it, or not.
  void OnHeard(uint32_t id);
  bool IsUnheard(uint32_t id) const;
  // Members not heard of for longer than `timeout`.
  std::vector<uint32_t> Silent(absl::Time now, absl::Duration timeout) const;

  // In order of id.
  const std::map<uint32_t, Member>& members() const { return members_; }
  std::vector<const Member*> OfKind(NodeKind kind) const;
  // How many of a kind are there to stay, that of number `but` left out.
  uint32_t CountStaying(NodeKind kind, uint32_t but = 0) const;

 private:
  absl::Status SetLanes(Member& member, const RegisterRequest& request) const;
  absl::Status FindRoom(const RegisterRequest& request, absl::Time now);
  // Of those who take a place of their kind, there to stay.
  size_t CountPlaced(NodeKind kind) const;
  // With lanes, and there to stay.
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
  std::map<uint32_t, Member> members_;
};

// "server" or "worker".
std::string KindName(NodeKind kind);

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_H_
