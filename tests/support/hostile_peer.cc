// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hostile_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "control/control_client.h"
#include "transport/zmq_handles.h"
#include "transport/zmq_transport.h"

namespace tug {
namespace {

constexpr size_t kSealedBytes = kHeaderBytes - 8;

Bytes Property(const std::string& name, const Bytes& value) {
  return Bytes{static_cast<std::byte>(name.size())} + BytesOf(name) +
         Bytes{std::byte{0}, std::byte{0}, std::byte{0}, static_cast<std::byte>(value.size())} +
         value;
}

Bytes RoutingIdBytes(PeerId peer) {
  const auto id = RoutingId(peer);
  return Bytes(id.begin(), id.end());
}

}  // namespace

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes BytesOf(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

RawConnection::RawConnection(const std::string& address) {
  absl::string_view place = address;
  absl::ConsumePrefix(&place, "tcp://");
  const auto parsed = ParseHostPort(std::string(place));
  TUG_CHECK_OK(parsed);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(parsed->port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  TUG_CHECK(fd_ >= 0);
  connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
}

RawConnection::~RawConnection() { close(fd_); }

void RawConnection::Write(const Bytes& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

Bytes ZmtpOpening(PeerId peer) {
  Bytes greeting(64, std::byte{0});
  greeting[0] = std::byte{0xFF};
  greeting[9] = std::byte{0x7F};
  greeting[10] = std::byte{3};
  const Bytes mechanism = BytesOf("NULL");
  std::copy(mechanism.begin(), mechanism.end(), greeting.begin() + 12);
  const Bytes ready = BytesOf("\x05READY") + Property("Socket-Type", BytesOf("DEALER")) +
                      Property("Identity", RoutingIdBytes(peer));
  return greeting + Bytes{std::byte{4}, static_cast<std::byte>(ready.size())} + ready;
}

Bytes ZmtpFrameHead(uint64_t size_bytes) {
  Bytes head{std::byte{2}};
  for (int shift = 56; shift >= 0; shift -= 8) {
    head.push_back(static_cast<std::byte>(size_bytes >> shift));
  }
  return head;
}

struct FramePeer::Sockets {
  ZmqContext context{zmq_ctx_new()};
  ZmqSocket socket{zmq_socket(context.get(), ZMQ_DEALER)};
};

FramePeer::FramePeer(const std::string& endpoint, PeerId peer)
    : FramePeer(endpoint, RoutingIdBytes(peer)) {}

FramePeer::FramePeer(const std::string& endpoint, const Bytes& routing_id)
    : sockets_(std::make_unique<Sockets>()) {
  void* const socket = sockets_->socket.get();
  const int linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
  if (!routing_id.empty()) {
    zmq_setsockopt(socket, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size());
  }
  TUG_CHECK(zmq_connect(socket, endpoint.c_str()) == 0) << endpoint;
}

FramePeer::~FramePeer() = default;

void FramePeer::Send(const std::vector<Bytes>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    const int sent =
        zmq_send(sockets_->socket.get(), frames[i].data(), frames[i].size(), ZMQ_DONTWAIT | more);
    if (sent < 0 && zmq_errno() == EAGAIN) return;
    TUG_CHECK(sent >= 0) << zmq_strerror(zmq_errno());
  }
}

Bytes HeaderBytes(WireHeader header, const Bytes& payload) {
  header.payload_bytes = payload.size();
  header.payload_xxh3 = payload.empty() ? 0 : PayloadChecksum(payload);
  std::array<std::byte, kHeaderBytes> bytes;
  EncodeHeader(header, bytes);
  return Bytes(bytes.begin(), bytes.end());
}

void Reseal(Bytes& header) {
  const uint64_t sum = XXH3_64bits(header.data(), kSealedBytes);
  for (size_t i = 0; i < 8; ++i) {
    header[kSealedBytes + i] = static_cast<std::byte>(sum >> (8 * i));
  }
}

}  // namespace tug
