// SPDX-License-Identifier: Apache-2.0
#include "control/control_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <charconv>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/net/host_name.h"
#include "base/status_macros.h"
#include "control/control_credentials.h"
#include "grpc/support/time.h"
#include "grpcpp/create_channel.h"
#include "proto/control.grpc.pb.h"
#include "security/security_rules.h"

namespace tug {
namespace {

gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(absl::ToInt64Milliseconds(timeout), GPR_TIMESPAN));
}

absl::Status CannotReach(const std::string& address, const std::string& why) {
  const absl::StatusOr<HostPort> at = ParseHostPort(address);
  const std::string loopback = at.ok() ? LoopbackOfName(at->host) : "";
  const std::string advice =
      loopback.empty()
          ? absl::StrCat("if it is not running, start it with `tug coordinator JOB --listen ",
                         address, "`")
          : absl::StrCat(at->host, " resolves to this host only (", loopback,
                         "): pass the address at which other hosts reach the coordinator's host");
  return absl::UnavailableError(
      absl::StrCat("cannot reach the coordinator at ", address, " (", why, "): ", advice));
}

// Whether a process listens at an address.
bool SomebodyListens(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(WithoutBrackets(address.host).c_str(), std::to_string(address.port).c_str(),
                  &hints, &found) != 0) {
    return false;
  }
  bool listens = false;
  for (const addrinfo* at = found; at != nullptr && !listens; at = at->ai_next) {
    const FileDescriptor socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    listens = connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0;
  }
  freeaddrinfo(found);
  return listens;
}

// Reason for a missing connection. With TLS the listener may have other keys, or none; a listener
// that has not replied yet looks the same.
absl::Status NoConnection(const std::string& address, absl::Duration timeout, const JobKeys& keys) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (keys.mode == SecurityConfig::CURVE && parsed.ok() && SomebodyListens(*parsed)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the process at ", address, " rejected the keys of this process (mode curve, fingerprint ",
        KeysFingerprint(keys),
        ") or did not reply in time: pass --keys FILE with a copy of the coordinator's keys; "
        "compare `tug keys --show FILE` on both hosts"));
  }
  return CannotReach(address, absl::StrCat("no connection within ", absl::FormatDuration(timeout)));
}

// Converts a gRPC status: same code, with a message that names the coordinator.
absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code == absl::StatusCode::kUnavailable) return CannotReach(address, "connection lost");
  if (code == absl::StatusCode::kDeadlineExceeded) {
    return CannotReach(address,
                       absl::StrCat("no reply within ", absl::FormatDuration(kControlCallTimeout)));
  }
  // gRPC's own message: the coordinator has no thread or memory for another call.
  const std::string& said = status.error_message();
  if (code == absl::StatusCode::kResourceExhausted &&
      (said == "Server Threadpool Exhausted" || absl::StrContains(said, "RST_STREAM"))) {
    return absl::UnavailableError(absl::StrCat(
        "the coordinator at ", address, " has no thread or memory for another call (", said,
        "): try again later, or raise the limits of its process (ulimit -u, -v)"));
  }
  if (code == absl::StatusCode::kUnimplemented) {
    return absl::FailedPreconditionError(
        absl::StrCat("the process at ", address,
                     " is not a Tugboat coordinator of this version: check the address"));
  }
  if (code == absl::StatusCode::kUnauthenticated) {
    return absl::Status(code, absl::StrCat("the coordinator at ", address,
                                           " refuses this process: ", status.error_message()));
  }
  return absl::Status(code, status.error_message());
}

}  // namespace

struct ControlClient::Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Control::Stub> stub;
};

ControlClient::ControlClient(std::string address, JobKeys keys,
                             std::unique_ptr<Connection> connection)
    : address_(std::move(address)), keys_(std::move(keys)), connection_(std::move(connection)) {}

ControlClient::~ControlClient() = default;

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0 && colon + 1 < text.size()) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end) port = -1;
  }
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not an address: write HOST:PORT, e.g. 127.0.0.1:7070"));
  }
  return HostPort{text.substr(0, colon), port};
}

absl::StatusOr<std::unique_ptr<ControlClient>> ControlClient::Connect(const std::string& address,
                                                                      absl::Duration timeout,
                                                                      const JobKeys& keys) {
  RETURN_IF_ERROR(ParseHostPort(address).status());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxControlMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxControlMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Another coordinator may recover the job at any moment.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  // Despite its name the limit for one attempt: longer than any handshake on a busy machine.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  SetTlsName(keys, arguments);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(address, ChannelCredentialsOf(keys), arguments);
  if (!channel->WaitForConnected(DeadlineAfter(timeout))) {
    return NoConnection(address, timeout, keys);
  }
  return std::unique_ptr<ControlClient>(new ControlClient(
      address, keys, std::make_unique<Connection>(Connection{channel, Control::NewStub(channel)})));
}

std::unique_ptr<PresenceCall> ControlClient::StayPresent(uint32_t node_id, uint64_t job) {
  return std::make_unique<PresenceCall>(connection_->channel, keys_, node_id, job);
}

bool ControlClient::IsConnected() const {
  return connection_->channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

void ControlClient::WaitForConnection(absl::Duration timeout) {
  connection_->channel->WaitForConnected(DeadlineAfter(timeout));
}

template <typename Reply, typename Call>
absl::StatusOr<Reply> ControlClient::Answer(Call call) const {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(kControlCallTimeout));
  AddProof(keys_, context);
  Reply reply;
  RETURN_IF_ERROR(FromGrpc(call(*connection_->stub, &context, &reply), address_));
  return reply;
}

absl::StatusOr<RegisterReply> ControlClient::Register(const RegisterRequest& request) {
  ASSIGN_OR_RETURN(RegisterReply reply,
                   Answer<RegisterReply>([&](Control::Stub& stub, auto* context, auto* out) {
                     return stub.Register(context, request, out);
                   }));
  // A coordinator without keys accepts anyone, and could be an impostor.
  RETURN_IF_ERROR(CheckKeysFit(reply.config().security().mode(), keys_));
  return reply;
}

absl::StatusOr<HeartbeatReply> ControlClient::Heartbeat(const HeartbeatRequest& request) {
  return Answer<HeartbeatReply>([&](Control::Stub& stub, auto* context, auto* out) {
    return stub.Heartbeat(context, request, out);
  });
}

absl::Status ControlClient::SendTrace(const TraceChunk& chunk) {
  return Answer<TraceReply>([&](Control::Stub& stub, auto* context, auto* out) {
           return stub.Trace(context, chunk, out);
         })
      .status();
}

absl::StatusOr<StatusReply> ControlClient::Status() {
  return Answer<StatusReply>([&](Control::Stub& stub, auto* context, auto* out) {
    return stub.Status(context, StatusRequest(), out);
  });
}

absl::StatusOr<StopReply> ControlClient::Stop() {
  return Answer<StopReply>([&](Control::Stub& stub, auto* context, auto* out) {
    return stub.Stop(context, StopRequest(), out);
  });
}

absl::StatusOr<DrainReply> ControlClient::Drain(const std::string& node) {
  DrainRequest request;
  request.set_name(node);
  return Answer<DrainReply>([&](Control::Stub& stub, auto* context, auto* out) {
    return stub.Drain(context, request, out);
  });
}

}  // namespace tug
