#include "proto/control_client.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace tug {
namespace {

std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
}

absl::Status CannotReach(const std::string& address, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot reach the coordinator at ", address, " (", why,
                   "): is it running? start it with `tug coordinator JOB --listen ", address, "`"));
}

template <typename Reply, typename Call>
absl::StatusOr<Reply> Answer(Call call, grpc::Status& status) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(kControlCallTimeout));
  Reply reply;
  status = call(&context, &reply);
  return reply;
}

}  // namespace

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
                                                                      absl::Duration timeout) {
  RETURN_IF_ERROR(ParseHostPort(address).status());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxControlMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxControlMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Another coordinator may take the job up any moment.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  // In spite of its name how long an attempt may take: more than any handshake on a busy machine.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(DeadlineAfter(timeout))) {
    return CannotReach(address,
                       absl::StrCat("no connection within ", absl::FormatDuration(timeout)));
  }
  return std::unique_ptr<ControlClient>(new ControlClient(address, channel));
}

bool ControlClient::IsConnected() const {
  return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

void ControlClient::WaitForConnection(absl::Duration timeout) {
  channel_->WaitForConnected(DeadlineAfter(timeout));
}

absl::Status ControlClient::FromGrpc(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code == absl::StatusCode::kUnavailable) return CannotReach(address_, "connection lost");
  if (code == absl::StatusCode::kDeadlineExceeded) {
    return CannotReach(
        address_, absl::StrCat("no answer within ", absl::FormatDuration(kControlCallTimeout)));
  }
  if (code == absl::StatusCode::kUnimplemented) {
    return absl::FailedPreconditionError(
        absl::StrCat("what answers at ", address_,
                     " is not a Tugboat coordinator of this version: check the address"));
  }
  return absl::Status(code, status.error_message());
}

absl::StatusOr<RegisterReply> ControlClient::Register(const RegisterRequest& request) {
  grpc::Status status;
  auto reply = Answer<RegisterReply>(
      [&](auto* context, auto* out) { return stub_->Register(context, request, out); }, status);
  RETURN_IF_ERROR(FromGrpc(status));
  return reply;
}

absl::StatusOr<HeartbeatReply> ControlClient::Heartbeat(const HeartbeatRequest& request) {
  grpc::Status status;
  auto reply = Answer<HeartbeatReply>(
      [&](auto* context, auto* out) { return stub_->Heartbeat(context, request, out); }, status);
  RETURN_IF_ERROR(FromGrpc(status));
  return reply;
}

absl::Status ControlClient::SendTrace(const TraceChunk& chunk) {
  grpc::Status status;
  (void)Answer<TraceReply>(
      [&](auto* context, auto* out) { return stub_->Trace(context, chunk, out); }, status);
  return FromGrpc(status);
}

absl::StatusOr<StatusReply> ControlClient::Status() {
  grpc::Status status;
  auto reply = Answer<StatusReply>(
      [&](auto* context, auto* out) { return stub_->Status(context, StatusRequest(), out); },
      status);
  RETURN_IF_ERROR(FromGrpc(status));
  return reply;
}

absl::StatusOr<StopReply> ControlClient::Stop() {
  grpc::Status status;
  auto reply = Answer<StopReply>(
      [&](auto* context, auto* out) { return stub_->Stop(context, StopRequest(), out); }, status);
  RETURN_IF_ERROR(FromGrpc(status));
  return reply;
}

absl::StatusOr<DrainReply> ControlClient::Drain(uint32_t node_id) {
  DrainRequest request;
  request.set_node_id(node_id);
  grpc::Status status;
  auto reply = Answer<DrainReply>(
      [&](auto* context, auto* out) { return stub_->Drain(context, request, out); }, status);
  RETURN_IF_ERROR(FromGrpc(status));
  return reply;
}

}  // namespace tug
