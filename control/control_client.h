// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CONTROL_CONTROL_CLIENT_H_
#define TUG_CONTROL_CONTROL_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/presence_call.h"
#include "proto/control.pb.h"
#include "security/job_keys.h"

namespace tug {

// Limit of a control message, in both directions.
inline constexpr int kMaxControlMessageBytes = 16 << 20;
// A call without a reply fails after this time.
inline constexpr absl::Duration kControlCallTimeout = absl::Seconds(5);

// Client of the coordinator's control service (proto/control.proto). Each call returns the reply,
// the coordinator's error (its code and message), or UNAVAILABLE with a remedy if it cannot be
// reached. Every call may be repeated: the service is idempotent. Thread-safe.
class ControlClient {
 public:
  // Waits up to `timeout` for the coordinator at `address` ("host:port"), which may start in the
  // meantime. `keys`: the job's. Errors: INVALID_ARGUMENT (no host:port), UNAUTHENTICATED (the
  // listener does not accept these keys, or, with CURVE, is too busy to reply), UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<ControlClient>> Connect(const std::string& address,
                                                                absl::Duration timeout,
                                                                const JobKeys& keys = JobKeys());

  ~ControlClient();

  absl::StatusOr<RegisterReply> Register(const RegisterRequest& request);
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest& request);
  absl::Status SendTrace(const TraceChunk& chunk);
  absl::StatusOr<StatusReply> Status();
  absl::StatusOr<StopReply> Stop();
  absl::StatusOr<DrainReply> Drain(const std::string& node);

  // Whether there is a connection. WaitForConnection waits up to `timeout` for one: gRPC connects
  // only while a thread waits or a call is open.
  bool IsConnected() const;
  void WaitForConnection(absl::Duration timeout);

  // Reports this node as alive until the returned object is destroyed.
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
// brackets). Errors: INVALID_ARGUMENT, quoting the text.
struct HostPort {
  std::string host;
  int port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace tug

#endif  // TUG_CONTROL_CONTROL_CLIENT_H_
