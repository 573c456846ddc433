#ifndef TUG_PROTO_CONTROL_CLIENT_H_
#define TUG_PROTO_CONTROL_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/control.pb.h"
#include "proto/presence_call.h"
#include "security/job_keys.h"

namespace tug {

// No control message is larger, in either direction.
inline constexpr int kMaxControlMessageBytes = 16 << 20;
// A call that is not answered for this long fails.
inline constexpr absl::Duration kControlCallTimeout = absl::Seconds(5);

// Calls to the coordinator's control service (proto/control.proto). Each call returns the reply, or
// what the coordinator answered (its code and message), or UNAVAILABLE with what to do when it
// cannot be reached. Every call may be repeated: the service is idempotent. Thread-safe.
class ControlClient {
 public:
  // Waits up to `timeout` for the coordinator at `address` ("host:port") to answer; a coordinator
  // that starts meanwhile is found. `keys`: of the job. Errors: INVALID_ARGUMENT (no host:port),
  // UNAUTHENTICATED (who is there does not take these keys, or, with CURVE, is too busy to),
  // UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<ControlClient>> Connect(const std::string& address,
                                                                absl::Duration timeout,
                                                                const JobKeys& keys = JobKeys());

  ~ControlClient();

  absl::StatusOr<RegisterReply> Register(const RegisterRequest& request);
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request);
  absl::Status SendTrace(const TraceChunk& chunk);
  absl::StatusOr<StatusReply> Status();
  absl::StatusOr<StopReply> Stop();
  absl::StatusOr<DrainReply> Drain(uint32_t node_id);

  // Whether there is a connection. Where there is none, waits up to `timeout` for one: it is made
  // only while somebody waits, or a call is open.
  bool IsConnected() const;
  void WaitForConnection(absl::Duration timeout);

  // That this node lives, until it is destroyed.
  std::unique_ptr<PresenceCall> StayPresent(uint32_t node_id, uint64_t job);

  const std::string& address() const { return address_; }
  const JobKeys& keys() const { return keys_; }

 private:
  struct Connection;  // gRPC's channel and stub

  ControlClient(std::string address, JobKeys keys, std::unique_ptr<Connection> connection);

  // Makes `call(stub, context, reply)`.
  template <typename Reply, typename Call>
  absl::StatusOr<Reply> Answer(Call call) const;

  const std::string address_;
  const JobKeys keys_;
  const std::unique_ptr<Connection> connection_;
};

// Splits "host:port"; the port is 0..65535 and the host not empty ("[::1]:7070" keeps its
// brackets). Errors: INVALID_ARGUMENT, naming the text.
struct HostPort {
  std::string host;
  int port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace tug

#endif  // TUG_PROTO_CONTROL_CLIENT_H_
