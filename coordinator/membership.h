#ifndef TUG_COORDINATOR_MEMBERSHIP_H_
#define TUG_COORDINATOR_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control.pb.h"

namespace tug {

// What the coordinator knows of one node.
struct Member {
  uint32_t id = 0;
  NodeKind kind = NODE_KIND_UNKNOWN;
  std::string host;
  uint32_t pid = 0;
  uint64_t incarnation = 0;
  std::vector<std::string> lane_endpoints;  // servers; empty until lanes are bound
  absl::Time last_heard;

  // From its newest heartbeat.
  uint32_t known_view = 0;
  bool ready = false;
  bool started = false;
  uint64_t clock = 0;
  bool pausing = false;
  bool finished = false;
  NodeCounters counters;
  bool trace_sent = false;
  bool trace_refused = false;   // a part of it
  uint32_t schedule = 0;        // number of the newest that it has taken
  NodeCounters ready_counters;  // of the heartbeat that said it was ready

  bool told_of_end = false;

  // "server 2 (host, pid 123)"
  std::string Name() const;
};

// Who is in the job. Until it is closed, servers and workers join up to the numbers asked for, and
// one that is lost gives up its place. Not thread-safe.
class Membership {
 public:
  Membership(uint32_t servers, uint32_t workers, uint32_t lanes_per_server)
      : servers_(servers), workers_(workers), lanes_per_server_(lanes_per_server) {}

  // A node joins, or joins again (same incarnation: same member), or adds its lanes' endpoints.
  // Errors: INVALID_ARGUMENT (no kind, malformed endpoints), RESOURCE_EXHAUSTED (full),
  // FAILED_PRECONDITION (lanes registered twice, differently).
  absl::StatusOr<uint32_t> Register(const RegisterRequest& request, absl::Time now);

  // Whether to register so would change nothing.
  bool Knows(const RegisterRequest& request) const;

  // Everyone asked for is in, servers with their lanes.
  bool Complete() const;
  bool ServersComplete() const;
  // From now on a place given up stays empty: nobody joins.
  void Close() { closed_ = true; }

  // nullptr: not a member.
  Member* Find(uint32_t id);
  void Remove(uint32_t id) { members_.erase(id); }
  // Members not heard of for longer than `timeout`.
  std::vector<uint32_t> Silent(absl::Time now, absl::Duration timeout) const;

  // In order of id.
  const std::map<uint32_t, Member>& members() const { return members_; }
  std::vector<const Member*> OfKind(NodeKind kind) const;
  bool Every(NodeKind kind, const std::function<bool(const Member&)>& holds) const;

 private:
  absl::Status SetLanes(Member& member, const RegisterRequest& request) const;

  const uint32_t servers_;
  const uint32_t workers_;
  const uint32_t lanes_per_server_;
  bool closed_ = false;
  uint32_t next_id_ = 1;
  std::map<uint32_t, Member> members_;
};

// "server" or "worker".
std::string KindName(NodeKind kind);

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_H_
