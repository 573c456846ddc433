// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_DUAL_TRANSPORT_H_
#define TUG_TRANSPORT_DUAL_TRANSPORT_H_

// Shared memory to peers on this host, TCP to all others. The choice is made per peer: a peer is on
// this host if it listens at its abstract socket. When the shared memory of a peer ends, later
// messages to it use TCP.

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "transport/shm_transport.h"
#include "transport/transport.h"
#include "transport/zmq_transport.h"

namespace tug {

// Used by one thread at a time, except Wake, NewBuffer and SharedBytes.
class DualTransport final : public Transport {
 public:
  struct Options {
    ZmqTransport::Options tcp;  // extra_fd is filled in
    uint64_t job = 0;
    bool shared_memory = true;
  };
  // Listens on TCP and, with `shared_memory`, at an abstract socket of this network namespace, if
  // tcp.bind_host is not empty. If that socket's name is taken, logs a warning, and peers connect
  // by TCP. Errors: as ZmqTransport::Create and ShmTransport::Create.
  static absl::StatusOr<std::unique_ptr<DualTransport>> Create(Options options);

  // Endpoint of the TCP side (ZmqTransport::endpoint).
  std::string endpoint() const { return tcp_->endpoint(); }
  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  void Wake() override;
  TransportCounters counters() const override;
  bool SharesMemoryWith(PeerId peer) const override {
    return shm_ != nullptr && shm_->SharesMemoryWith(peer);
  }
  std::shared_ptr<AlignedBuffer> NewBuffer(size_t size_bytes) override;
  uint64_t SharedBytes() const override { return shm_ == nullptr ? 0 : shm_->SharedBytes(); }

 private:
  DualTransport(std::unique_ptr<ShmTransport> shm, std::unique_ptr<ZmqTransport> tcp)
      : shm_(std::move(shm)), tcp_(std::move(tcp)) {}

  const std::unique_ptr<ShmTransport> shm_;  // null: TCP only
  const std::unique_ptr<ZmqTransport> tcp_;
  // Endpoints of peers connected through shared memory: the fallback when it ends.
  std::unordered_map<PeerId, std::string> tcp_endpoints_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_DUAL_TRANSPORT_H_
