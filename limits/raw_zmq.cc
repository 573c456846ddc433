// SPDX-License-Identifier: Apache-2.0
#include <zmq.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/memory/large_blocks.h"
#include "base/memory/lease.h"
#include "base/status_macros.h"
#include "limits/raw_limits.h"
#include "proto/wire.h"
#include "transport/zmq_handles.h"

namespace tug {
namespace {

constexpr uint64_t kQueuedBytes = uint64_t{64} << 20;  // as much as our credit allows in flight

absl::Status ZmqError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", zmq_strerror(zmq_errno())));
}

struct Socket {
  ZmqContext context;
  ZmqSocket socket;
};

Socket NewSocket(int type, uint64_t message_bytes) {
  Socket s{ZmqContext(zmq_ctx_new()), nullptr};
  s.socket.reset(zmq_socket(s.context.get(), type));
  const int queued = static_cast<int>(std::clamp<uint64_t>(kQueuedBytes / message_bytes, 2, 1000));
  zmq_setsockopt(s.socket.get(), ZMQ_SNDHWM, &queued, sizeof(queued));
  zmq_setsockopt(s.socket.get(), ZMQ_RCVHWM, &queued, sizeof(queued));
  return s;
}

// Binds to a free port and reports it.
absl::StatusOr<Socket> Listen(BenchChild& child, const std::string& host, uint64_t bytes) {
  KeepLargeBlocksMapped();  // like our servers
  ASSIGN_OR_RETURN(const std::string address, BenchAddress(host));
  Socket s = NewSocket(ZMQ_ROUTER, bytes);
  char endpoint[128];
  size_t size = sizeof(endpoint);
  if (zmq_bind(s.socket.get(), absl::StrCat("tcp://", address, ":*").c_str()) != 0 ||
      zmq_getsockopt(s.socket.get(), ZMQ_LAST_ENDPOINT, endpoint, &size) != 0) {
    return ZmqError("cannot listen");
  }
  child.Say(endpoint);
  return s;
}

absl::StatusOr<Socket> Connect(const std::string& endpoint, uint64_t bytes) {
  Socket s = NewSocket(ZMQ_DEALER, bytes);
  if (zmq_connect(s.socket.get(), endpoint.c_str()) != 0) return ZmqError("cannot connect");
  return s;
}

Lease Payload(uint64_t bytes) {
  auto buffer = std::make_shared<AlignedBuffer>(bytes);
  const std::span<const std::byte> all(buffer->data(), buffer->size_bytes());
  return Lease(std::move(buffer), all);
}

absl::Status Send(const Socket& s, ZmqFrame frame, int flags = 0) {
  return zmq_msg_send(frame.get(), s.socket.get(), flags) < 0 ? ZmqError("cannot send")
                                                              : absl::OkStatus();
}

absl::Status Receive(const Socket& s, ZmqFrame& frame) {
  return zmq_msg_recv(frame.get(), s.socket.get(), 0) < 0 ? ZmqError("cannot receive")
                                                          : absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchWindow> ZmqStream(const RawSetting& setting) {
  BenchProcesses processes;
  const uint64_t bytes = setting.bytes;
  const std::string host = setting.server_host;
  RETURN_IF_ERROR(processes.Start("ROUTER", host, [=](BenchChild& child) -> absl::Status {
    ASSIGN_OR_RETURN(const Socket s, Listen(child, host, bytes));
    while (true) {
      ZmqFrame id;
      ZmqFrame payload;
      RETURN_IF_ERROR(Receive(s, id));
      RETURN_IF_ERROR(Receive(s, payload));
      child.tally().Count(payload.bytes().size(), 0, 1);
    }
  }));
  ASSIGN_OR_RETURN(const std::string endpoint, processes.Hear(0));
  RETURN_IF_ERROR(processes.Start("DEALER", setting.worker_host, [=](BenchChild&) -> absl::Status {
    ASSIGN_OR_RETURN(const Socket s, Connect(endpoint, bytes));
    const Lease payload = Payload(bytes);
    const auto pool = std::make_shared<BlockPool>();
    while (true) RETURN_IF_ERROR(Send(s, ZmqFrame(payload, *pool)));
  }));
  return processes.Measure(setting.window);
}

absl::StatusOr<BenchWindow> ZmqRoundTrip(const RawSetting& setting) {
  BenchProcesses processes;
  const uint64_t bytes = setting.bytes;
  const std::string host = setting.server_host;
  RETURN_IF_ERROR(processes.Start("ROUTER", host, [=](BenchChild& child) -> absl::Status {
    ASSIGN_OR_RETURN(const Socket s, Listen(child, host, bytes));
    while (true) {
      ZmqFrame id;
      ZmqFrame payload;
      RETURN_IF_ERROR(Receive(s, id));
      RETURN_IF_ERROR(Receive(s, payload));
      RETURN_IF_ERROR(Send(s, std::move(id), ZMQ_SNDMORE));
      RETURN_IF_ERROR(Send(s, ZmqFrame(kHeaderBytes)));
    }
  }));
  ASSIGN_OR_RETURN(const std::string endpoint, processes.Hear(0));
  RETURN_IF_ERROR(
      processes.Start("DEALER", setting.worker_host, [=](BenchChild& child) -> absl::Status {
        ASSIGN_OR_RETURN(const Socket s, Connect(endpoint, bytes));
        const Lease payload = Payload(kHeaderBytes + bytes);
        const auto pool = std::make_shared<BlockPool>();
        while (true) {
          const int64_t begin = MonotonicNs();
          RETURN_IF_ERROR(Send(s, ZmqFrame(payload, *pool)));
          ZmqFrame answer;
          RETURN_IF_ERROR(Receive(s, answer));
          child.tally().AddLatency(0, MonotonicNs() - begin);
          child.tally().Count(bytes, 0, 1);
        }
      }));
  return processes.Measure(setting.window);
}

}  // namespace tug
