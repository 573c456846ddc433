// SPDX-License-Identifier: Apache-2.0
#include "transport/dual_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cpu/spin.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tug {

namespace {

// If another process has taken the socket name, peers connect by TCP.
absl::StatusOr<std::unique_ptr<ShmTransport>> OpenSharedMemory(ShmTransport::Options options) {
  absl::StatusOr<std::unique_ptr<ShmTransport>> opened = ShmTransport::Create(options);
  if (!absl::IsAlreadyExists(opened.status())) return opened;
  LogWarning(absl::StrCat(opened.status().message(),
                          "; peers connect over TCP instead. With security.mode TOKEN or CURVE no "
                          "other user can use the name"));
  options.listen = false;
  return ShmTransport::Create(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DualTransport>> DualTransport::Create(Options options) {
  std::unique_ptr<ShmTransport> shm;
  if (options.shared_memory) {
    ShmTransport::Options local;
    local.self = options.tcp.self;
    local.job = options.job;
    local.listen = !options.tcp.bind_host.empty();
    local.max_message_bytes = options.tcp.max_message_bytes;
    local.spin = DefaultSpin();
    local.keys = options.tcp.keys;
    ASSIGN_OR_RETURN(shm, OpenSharedMemory(local));
    options.tcp.extra_fd = shm->wait_fd();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ZmqTransport> tcp, ZmqTransport::Create(options.tcp));
  return std::unique_ptr<DualTransport>(new DualTransport(std::move(shm), std::move(tcp)));
}

absl::Status DualTransport::Connect(PeerId peer, const std::string& endpoint) {
  if (shm_ != nullptr) {
    const absl::Status local = shm_->Connect(peer, endpoint);
    if (local.ok()) {
      tcp_endpoints_[peer] = endpoint;
      return absl::OkStatus();
    }
    // The peer is remote, or it is local but files or memory are short, here or at the peer, which
    // has hung up.
    const bool use_tcp =
        absl::IsNotFound(local) || absl::IsResourceExhausted(local) || absl::IsUnavailable(local);
    if (!use_tcp) return local;
  }
  return tcp_->Connect(peer, endpoint);
}

absl::Status DualTransport::Send(Outgoing message) {
  if (SharesMemoryWith(message.to)) return shm_->Send(std::move(message));
  if (const auto known = tcp_endpoints_.find(message.to); known != tcp_endpoints_.end()) {
    RETURN_IF_ERROR(tcp_->Connect(message.to, known->second));
    tcp_endpoints_.erase(known);
  }
  return tcp_->Send(std::move(message));
}

void DualTransport::Poll(absl::Duration timeout, const std::function<void(Message)>& handler) {
  if (shm_ == nullptr) return tcp_->Poll(timeout, handler);
  shm_->PollWith(timeout, handler, [&](absl::Duration rest) { tcp_->Poll(rest, handler); });
  tcp_->Flush();  // messages of shared memory, and the handler's replies to them
}

void DualTransport::Wake() {
  if (shm_ == nullptr) return tcp_->Wake();
  shm_->Wake();
}

TransportCounters DualTransport::counters() const {
  TransportCounters counters = tcp_->counters();
  if (shm_ == nullptr) return counters;
  const TransportCounters local = shm_->counters();
  counters.sent_messages += local.sent_messages;
  counters.sent_bytes += local.sent_bytes;
  counters.received_messages += local.received_messages;
  counters.received_bytes += local.received_bytes;
  counters.dropped += local.dropped;
  counters.connections_refused += local.connections_refused;
  return counters;
}

std::shared_ptr<AlignedBuffer> DualTransport::NewBuffer(size_t size_bytes) {
  return shm_ == nullptr ? tcp_->NewBuffer(size_bytes) : shm_->NewBuffer(size_bytes);
}

}  // namespace tug
