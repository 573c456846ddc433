#include "transport/zmq_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr int kMaxSockets = 32768;  // one per peer connected to
constexpr int kBacklog = 1024;      // workers of a job may all connect at once
constexpr int kHandshakeMs = 5000;  // a connection that says nothing is closed
constexpr int kReconnectMs = 50;
constexpr int kReconnectMaxMs = 1000;
// A silent host is given up after 10 + 3 x 5 s.
constexpr int kKeepaliveIdleS = 10;
constexpr int kKeepaliveIntervalS = 5;
constexpr int kKeepaliveCount = 3;

void SetOption(void* socket, int option, int value) {
  TUG_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0) << "option " << option;
}

absl::Status ListenError(const std::string& where, int error) {
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", where, ": address in use; choose another port or 0"));
  }
  const std::string reason = zmq_strerror(error);
  if (error == EACCES) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", where, ": ", reason, "; choose a port above 1023 or 0"));
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", where, ": ", reason,
                                                 "; give an IPv4 address of this machine"));
}

absl::Status SendFrame(void* socket, ZmqFrame frame, int flags, PeerId to) {
  if (zmq_msg_send(frame.get(), socket, flags | ZMQ_DONTWAIT) >= 0) return absl::OkStatus();
  const int error = zmq_errno();
  if (error == EHOSTUNREACH) {
    return absl::NotFoundError(
        absl::StrCat(PeerName(to), " is not reachable: it has not connected, or is gone"));
  }
  if (error == EAGAIN) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue to ", PeerName(to), " is full"));
  }
  return absl::InternalError(absl::StrCat("sending to ", PeerName(to), ": ", zmq_strerror(error)));
}

// Reads one message, all its frames; keeps the first `frames.size()`. Returns how many there were,
// 0 if no message is at hand.
int ReadMessage(void* socket, std::span<ZmqFrame> frames) {
  size_t count = 0;
  ZmqFrame surplus;
  for (bool more = true; more; ++count) {
    ZmqFrame& frame = count < frames.size() ? frames[count] : surplus;
    while (zmq_msg_recv(frame.get(), socket, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EINTR) continue;
      TUG_CHECK_EQ(zmq_errno(), EAGAIN) << zmq_strerror(zmq_errno());
      // libzmq hands over messages whole: only the first frame can be missing.
      TUG_CHECK_EQ(count, size_t{0});
      return 0;
    }
    more = frame.more();
  }
  return static_cast<int>(std::min(count, frames.size() + 1));
}

// Read access to a received payload, in place where numbers may be read there.
Lease LeaseOf(ZmqFrame payload) {
  const std::span<const std::byte> bytes = payload.bytes();
  if (bytes.empty()) return Lease();
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kPayloadAlignment != 0) {
    auto copy = std::make_shared<AlignedBuffer>(bytes.size());
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    return Lease(copy, std::span<const std::byte>(copy->data(), copy->size_bytes()));
  }
  auto owner = std::make_shared<ZmqFrame>(std::move(payload));
  const std::span<const std::byte> in_place = owner->bytes();
  return Lease(std::move(owner), in_place);
}

}  // namespace

std::array<std::byte, kRoutingIdBytes> RoutingId(PeerId peer) {
  std::array<std::byte, kRoutingIdBytes> id;
  id[0] = std::byte{'T'};
  for (size_t i = 0; i < 4; ++i) id[1 + i] = static_cast<std::byte>(peer >> (8 * i));
  return id;
}

std::optional<PeerId> PeerOfRoutingId(std::span<const std::byte> id) {
  if (id.size() != kRoutingIdBytes || id[0] != std::byte{'T'}) return std::nullopt;
  PeerId peer = 0;
  for (size_t i = 0; i < 4; ++i) peer |= static_cast<PeerId>(id[1 + i]) << (8 * i);
  return peer;
}

absl::StatusOr<std::unique_ptr<ZmqTransport>> ZmqTransport::Create(const Options& options) {
  TUG_CHECK_LE(options.max_message_bytes, kMaxPayloadBytes);
  ZmqContext context(zmq_ctx_new());
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (context == nullptr || wake_fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot open a transport: ", std::strerror(errno),
                     "; raise the limit of open files (ulimit -n)"));
  }
  TUG_CHECK(zmq_ctx_set(context.get(), ZMQ_IO_THREADS, options.io_threads) == 0);
  TUG_CHECK(zmq_ctx_set(context.get(), ZMQ_MAX_SOCKETS, kMaxSockets) == 0);
  std::unique_ptr<ZmqTransport> transport(new ZmqTransport(options, std::move(context), wake_fd));
  if (!options.bind_host.empty()) RETURN_IF_ERROR(transport->Listen());
  return transport;
}

ZmqTransport::ZmqTransport(const Options& options, ZmqContext context, int wake_fd)
    : options_(options),
      context_(std::move(context)),
      wake_fd_(wake_fd),
      poll_items_{zmq_pollitem_t{nullptr, wake_fd, ZMQ_POLLIN, 0},
                  zmq_pollitem_t{nullptr, options.extra_fd, ZMQ_POLLIN, 0}},
      admission_(options.self, options.max_message_bytes) {}

ZmqTransport::~ZmqTransport() {
  links_.clear();
  context_.reset();
  close(wake_fd_);
}

absl::StatusOr<ZmqSocket> ZmqTransport::NewSocket(int type) {
  ZmqSocket owned(zmq_socket(context_.get(), type));
  if (owned == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot open a socket: ", zmq_strerror(zmq_errno()),
                     "; raise the limit of open files (ulimit -n)"));
  }
  void* const socket = owned.get();
  SetOption(socket, ZMQ_LINGER, kLingerMs);
  SetOption(socket, ZMQ_IPV6, 0);
  SetOption(socket, ZMQ_SNDHWM, options_.send_high_water);
  SetOption(socket, ZMQ_RCVHWM, options_.receive_high_water);
  SetOption(socket, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  SetOption(socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  SetOption(socket, ZMQ_TCP_KEEPALIVE, 1);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveCount);
  const int64_t max_frame =
      static_cast<int64_t>(std::max<uint64_t>(options_.max_message_bytes, kHeaderBytes));
  TUG_CHECK(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_frame, sizeof(max_frame)) == 0);
  return owned;
}

absl::Status ZmqTransport::Listen() {
  ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(ZMQ_ROUTER));
  SetOption(socket.get(), ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket.get(), ZMQ_ROUTER_HANDOVER, 1);
  SetOption(socket.get(), ZMQ_BACKLOG, kBacklog);
  const std::string where = absl::StrCat(options_.bind_host, ":", options_.bind_port);
  if (zmq_bind(socket.get(), absl::StrCat("tcp://", where).c_str()) != 0) {
    return ListenError(where, zmq_errno());
  }
  char last_endpoint[256];
  size_t size = sizeof(last_endpoint);
  TUG_CHECK(zmq_getsockopt(socket.get(), ZMQ_LAST_ENDPOINT, last_endpoint, &size) == 0);
  const std::string bound(last_endpoint);
  endpoint_ = absl::StrCat("tcp://", options_.bind_host, bound.substr(bound.rfind(':')));
  router_ = links_.size();
  poll_items_.push_back({socket.get(), 0, ZMQ_POLLIN, 0});
  links_.push_back({std::move(socket), std::nullopt, endpoint_});
  return absl::OkStatus();
}

absl::Status ZmqTransport::Connect(PeerId peer, const std::string& endpoint) {
  const auto known = dealers_.find(peer);
  if (known != dealers_.end() && links_[known->second].endpoint == endpoint) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(ZMQ_DEALER));
  const auto id = RoutingId(options_.self);
  TUG_CHECK(zmq_setsockopt(socket.get(), ZMQ_ROUTING_ID, id.data(), id.size()) == 0);
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot connect to ", PeerName(peer), " at '",
                                                   endpoint, "': ", zmq_strerror(zmq_errno()),
                                                   "; an endpoint is tcp://HOST:PORT"));
  }
  void* const handle = socket.get();
  Link link{std::move(socket), peer, endpoint};
  if (known != dealers_.end()) {
    // What is queued for the old place is of no use at the new one.
    SetOption(links_[known->second].socket.get(), ZMQ_LINGER, 0);
    links_[known->second] = std::move(link);
    poll_items_[kFixedItems + known->second].socket = handle;
    return absl::OkStatus();
  }
  dealers_[peer] = links_.size();
  poll_items_.push_back({handle, 0, ZMQ_POLLIN, 0});
  links_.push_back(std::move(link));
  return absl::OkStatus();
}

absl::Status ZmqTransport::Send(Outgoing message) {
  const uint64_t payload_bytes = message.payload.size_bytes();
  TUG_CHECK_LE(payload_bytes, options_.max_message_bytes) << "to " << PeerName(message.to);
  if (const auto dealer = dealers_.find(message.to); dealer != dealers_.end()) {
    RETURN_IF_ERROR(SendTo(links_[dealer->second].socket.get(), message, /*routed=*/false));
  } else if (router_.has_value()) {
    RETURN_IF_ERROR(SendTo(links_[*router_].socket.get(), message, /*routed=*/true));
  } else {
    return absl::NotFoundError(
        absl::StrCat(PeerName(message.to), " is not reachable: never connected to"));
  }
  ++counters_.sent_messages;
  counters_.sent_bytes += kHeaderBytes + payload_bytes;
  return absl::OkStatus();
}

absl::Status ZmqTransport::SendTo(void* socket, const Outgoing& message, bool routed) {
  if (routed) {
    // First, since it fails if the peer is not there, before time is spent on the rest.
    const auto id = RoutingId(message.to);
    ZmqFrame address(id.size());
    std::memcpy(address.bytes().data(), id.data(), id.size());
    RETURN_IF_ERROR(SendFrame(socket, std::move(address), ZMQ_SNDMORE, message.to));
  }
  ZmqFrame header(kHeaderBytes);
  SealHeader(options_.self, message.payload.bytes(), options_.checksum, message.header,
             header.bytes().first<kHeaderBytes>());
  RETURN_IF_ERROR(SendFrame(socket, std::move(header), ZMQ_SNDMORE, message.to));
  return SendFrame(socket, ZmqFrame(message.payload), 0, message.to);
}

void ZmqTransport::Poll(absl::Duration timeout, const std::function<void(Message)>& handler) {
  WaitForEvents(timeout);
  ready_.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    const size_t link = (first_turn_ + i) % links_.size();
    if ((poll_items_[kFixedItems + link].revents & ZMQ_POLLIN) != 0) ready_.push_back(link);
  }
  // One message of each in turn, until all are empty or the batch is full. The handler may add
  // links or replace one: only indices are held.
  int left = kMaxBatch;
  while (!ready_.empty() && left > 0) {
    size_t kept = 0;
    for (size_t i = 0; i < ready_.size(); ++i) {
      if (left == 0) {
        first_turn_ = ready_[i];
        return;
      }
      if (!ReceiveOne(ready_[i], handler)) continue;
      --left;
      ready_[kept++] = ready_[i];
    }
    ready_.resize(kept);
  }
}

void ZmqTransport::WaitForEvents(absl::Duration timeout) {
  int64_t timeout_ms = -1;
  if (timeout != absl::InfiniteDuration()) {
    timeout_ms =
        std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
  }
  for (zmq_pollitem_t& item : poll_items_) item.revents = 0;
  if (zmq_poll(poll_items_.data(), static_cast<int>(poll_items_.size()), timeout_ms) < 0) {
    TUG_CHECK_EQ(zmq_errno(), EINTR) << zmq_strerror(zmq_errno());
    return;
  }
  if (poll_items_[0].revents != 0) {
    uint64_t wakes;
    while (read(wake_fd_, &wakes, sizeof(wakes)) < 0 && errno == EINTR) {
    }
  }
}

bool ZmqTransport::ReceiveOne(size_t link, const std::function<void(Message)>& handler) {
  const std::optional<PeerId> peer = links_[link].peer;
  std::array<ZmqFrame, 3> frames;
  // From the ROUTER: routing id, header, payload.
  const int wanted = peer.has_value() ? 2 : 3;
  const int count = ReadMessage(links_[link].socket.get(), std::span(frames).first(wanted));
  if (count == 0) return false;
  const std::optional<PeerId> from = peer.has_value() ? peer : PeerOfRoutingId(frames[0].bytes());
  if (!from.has_value()) {
    admission_.Drop(Fault::kIdentity, "an unknown sender", "its routing id is not a Tugboat one");
  } else if (count != wanted) {
    admission_.Drop(Fault::kFrames, PeerName(*from), "it is not one header and one payload");
  } else {
    Deliver(*from, std::move(frames[wanted - 2]), std::move(frames[wanted - 1]), handler);
  }
  return true;
}

void ZmqTransport::Deliver(PeerId from, ZmqFrame header, ZmqFrame payload,
                           const std::function<void(Message)>& handler) {
  const std::optional<WireHeader> admitted =
      admission_.Admit(from, header.bytes(), payload.bytes());
  if (!admitted.has_value()) return;
  ++counters_.received_messages;
  counters_.received_bytes += kHeaderBytes + payload.bytes().size();
  handler(Message{*admitted, LeaseOf(std::move(payload))});
}

void ZmqTransport::Wake() {
  const uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

TransportCounters ZmqTransport::counters() const {
  TransportCounters counters = counters_;
  counters.dropped = admission_.dropped();
  return counters;
}

}  // namespace tug
