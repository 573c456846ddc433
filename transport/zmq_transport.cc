// SPDX-License-Identifier: Apache-2.0
#include "transport/zmq_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr int kMaxSockets = 32768;  // one per peer connected to
constexpr int kBacklog = 1024;      // all workers of a job may connect at once
constexpr absl::Duration kFullQueueRetry = absl::Milliseconds(1);  // interval
constexpr int kReconnectMs = 50;
constexpr int kReconnectMaxMs = 1000;
// A silent host is declared lost after 10 + 3 x 5 s.
constexpr int kKeepaliveIdleS = 10;
constexpr int kKeepaliveIntervalS = 5;
constexpr int kKeepaliveCount = 3;

void SetOption(void* socket, int option, int value) {
  TUG_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0) << "option " << option;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
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
        absl::StrCat(PeerName(to), " is not reachable: it has not connected, or has disconnected"));
  }
  if (error == EAGAIN) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue to ", PeerName(to), " is full"));
  }
  return absl::InternalError(absl::StrCat("sending to ", PeerName(to), ": ", zmq_strerror(error)));
}

// Reads all frames of one message and keeps the first `frames.size()`. Returns the number of
// frames, 0 if no message is available.
int ReadMessage(void* socket, std::span<ZmqFrame> frames) {
  size_t count = 0;
  ZmqFrame surplus;
  for (bool more = true; more; ++count) {
    ZmqFrame& frame = count < frames.size() ? frames[count] : surplus;
    while (zmq_msg_recv(frame.get(), socket, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EINTR) continue;
      TUG_CHECK_EQ(zmq_errno(), EAGAIN) << zmq_strerror(zmq_errno());
      // libzmq delivers messages atomically: only the first frame can be missing.
      TUG_CHECK_EQ(count, size_t{0});
      return 0;
    }
    more = frame.more();
  }
  return static_cast<int>(std::min(count, frames.size() + 1));
}

// Descriptor through which a socket announces messages (see Link::drained).
int DescriptorOf(void* socket) {
  int fd = -1;
  size_t size = sizeof(fd);
  TUG_CHECK(zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0);
  return fd;
}

timespec TimespecOf(absl::Duration timeout) {
  return absl::ToTimespec(std::max(timeout, absl::ZeroDuration()));
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
      pool_(std::make_shared<BlockPool>()),
      context_(std::move(context)),
      wake_fd_(wake_fd),
      poll_items_{pollfd{wake_fd, POLLIN, 0}, pollfd{options.extra_fd, POLLIN, 0}},
      admission_(options.self, options.max_message_bytes) {}

ZmqTransport::~ZmqTransport() {
  Flush();
  links_.clear();
  context_.reset();
  zap_.reset();
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
  SetOption(socket, ZMQ_HANDSHAKE_IVL, Milliseconds(options_.handshake));
  SetOption(socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  SetOption(socket, ZMQ_TCP_KEEPALIVE, 1);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveCount);
  const auto max_frame = static_cast<int64_t>(MaxFrameBytes());
  TUG_CHECK(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_frame, sizeof(max_frame)) == 0);
  return owned;
}

uint64_t ZmqTransport::MaxFrameBytes() const {
  return std::max<uint64_t>(options_.max_message_bytes, kMaxBatchBytes);
}

absl::Duration ZmqTransport::SilenceLimit() const {
  return options_.patience + absl::Seconds(MaxFrameBytes() / static_cast<double>(kSlowestLink));
}

absl::Status ZmqTransport::Listen() {
  ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(ZMQ_ROUTER));
  SetOption(socket.get(), ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket.get(), ZMQ_ROUTER_HANDOVER, 1);
  SetOption(socket.get(), ZMQ_BACKLOG, kBacklog);
  SetServerKeys(socket.get(), options_.keys);
  if (!options_.keys.none()) {
    ASSIGN_OR_RETURN(
        zap_, ZapHandler::Create(context_.get(), socket.get(), options_.keys, options_.max_waiting,
                                 [self = options_.self](const std::string& line) {
                                   LogWarning(line, {{"endpoint", PeerName(self)}});
                                 }));
  }
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
  AddLink({std::move(socket), std::nullopt, endpoint_});
  return absl::OkStatus();
}

void ZmqTransport::AddLink(Link link) {
  poll_items_.push_back({DescriptorOf(link.socket.get()), POLLIN, 0});
  links_.push_back(std::move(link));
}

absl::Status ZmqTransport::Connect(PeerId peer, const std::string& endpoint) {
  const auto known = routes_.find(peer);
  const bool has_dealer = known != routes_.end() && !known->second.routed;
  if (has_dealer && links_[known->second.link].endpoint == endpoint) return absl::OkStatus();
  ASSIGN_OR_RETURN(ZmqSocket socket, NewSocket(ZMQ_DEALER));
  const auto id = RoutingId(options_.self);
  TUG_CHECK(zmq_setsockopt(socket.get(), ZMQ_ROUTING_ID, id.data(), id.size()) == 0);
  SetClientKeys(socket.get(), options_.keys);
  SetOption(socket.get(), ZMQ_HEARTBEAT_IVL, Milliseconds(options_.heartbeat));
  SetOption(socket.get(), ZMQ_HEARTBEAT_TIMEOUT, Milliseconds(SilenceLimit()));
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot connect to ", PeerName(peer), " at '",
                                                   endpoint, "': ", zmq_strerror(zmq_errno()),
                                                   "; an endpoint is tcp://HOST:PORT"));
  }
  Link link{std::move(socket), peer, endpoint};
  if (has_dealer) {
    // Messages queued for the old endpoint are useless at the new one.
    Route& route = known->second;
    counters_.lost += route.batch.records();
    route.batch.Clear();
    route.reachable = true;
    SetOption(links_[route.link].socket.get(), ZMQ_LINGER, 0);
    poll_items_[kFixedItems + route.link].fd = DescriptorOf(link.socket.get());
    links_[route.link] = std::move(link);
    return absl::OkStatus();
  }
  if (known != routes_.end()) {
    FlushRoute(known->second).IgnoreError();
    known->second.link = links_.size();
    known->second.routed = false;
    known->second.reachable = true;
  } else {
    routes_.try_emplace(peer, peer, links_.size(), /*routed=*/false, pool_);
  }
  AddLink(std::move(link));
  return absl::OkStatus();
}

ZmqTransport::Route* ZmqTransport::FindRoute(PeerId to) {
  if (const auto known = routes_.find(to); known != routes_.end()) return &known->second;
  if (!router_.has_value()) return nullptr;
  return &routes_.try_emplace(to, to, *router_, /*routed=*/true, pool_).first->second;
}

absl::Status ZmqTransport::Send(Outgoing message) {
  const size_t payload_bytes = message.payload.size_bytes();
  TUG_CHECK_LE(payload_bytes, options_.max_message_bytes) << "to " << PeerName(message.to);
  Route* const route = FindRoute(message.to);
  if (route == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        PeerName(message.to), " is not reachable: this process never connected to it"));
  }
  // To an unreachable peer each message leaves alone, so that Send can return its failure.
  const bool small = payload_bytes <= kSmallPayloadBytes && route->reachable;
  absl::Status room = absl::OkStatus();
  if (small && !route->batch.Fits(payload_bytes)) room = FlushRoute(*route);
  if (absl::IsResourceExhausted(room)) return room;
  if (small && room.ok()) {
    route->batch.Add(options_.self, options_.checksum, message);
    if (!route->queued) queued_.push_back(route);
    route->queued = true;
  } else {
    RETURN_IF_ERROR(SendNow(*route, message));
  }
  ++counters_.sent_messages;
  counters_.sent_bytes += kHeaderBytes + payload_bytes;
  counters_.socket_bytes = counters_.sent_bytes;
  return absl::OkStatus();
}

absl::Status ZmqTransport::SendNow(Route& route, const Outgoing& message) {
  // Flush the batch separately: in one message it would arrive only after the whole payload.
  const absl::Status flushed = FlushRoute(route);
  if (absl::IsResourceExhausted(flushed)) return flushed;
  // FlushRoute counts any other failure; this message gets its own status.
  route.batch.AddHeader(options_.self, options_.checksum, message);
  const absl::Status status = WriteMessage(route, message.payload);
  route.batch.Clear();
  return status;
}

absl::Status ZmqTransport::FlushRoute(Route& route) {
  if (route.batch.empty()) return absl::OkStatus();
  const absl::Status status = WriteMessage(route, route.batch.payloads());
  // Their Sends returned OK, so they stay batched until the queue has room.
  if (absl::IsResourceExhausted(status)) return status;
  if (!status.ok()) counters_.lost += route.batch.records();
  route.batch.Clear();
  return status;
}

void ZmqTransport::Flush() {
  std::erase_if(queued_, [this](Route* route) {
    route->queued = absl::IsResourceExhausted(FlushRoute(*route));  // else sent, or counted as lost
    return !route->queued;
  });
}

absl::Status ZmqTransport::WriteMessage(Route& route, const Lease& payloads) {
  const absl::Status status = WriteFrames(route, payloads);
  // A full queue means that the peer is reachable.
  route.reachable = status.ok() || absl::IsResourceExhausted(status);
  return status;
}

// libzmq accepts all frames of a message or none: only the first send can fail.
absl::Status ZmqTransport::WriteFrames(Route& route, const Lease& payloads) {
  Link& link = links_[route.link];
  link.drained = false;
  void* const socket = link.socket.get();
  if (route.routed) {
    const auto id = RoutingId(route.to);
    ZmqFrame address(id.size());
    std::memcpy(address.bytes().data(), id.data(), id.size());
    RETURN_IF_ERROR(SendFrame(socket, std::move(address), ZMQ_SNDMORE, route.to));
  }
  const std::span<const std::byte> run = route.batch.headers();
  ZmqFrame headers(run.size());
  std::memcpy(headers.bytes().data(), run.data(), run.size());
  RETURN_IF_ERROR(SendFrame(socket, std::move(headers), ZMQ_SNDMORE, route.to));
  if (payloads.size_bytes() > kSmallPayloadBytes) {
    RETURN_IF_ERROR(SendFrame(socket, ZmqFrame(payloads, *pool_), 0, route.to));
  } else {
    // libzmq copies this few bytes in any case; copying here frees the block at once.
    ZmqFrame copy(payloads.size_bytes());
    if (payloads.size_bytes() > 0) {
      std::memcpy(copy.bytes().data(), payloads.bytes().data(), payloads.size_bytes());
    }
    RETURN_IF_ERROR(SendFrame(socket, std::move(copy), 0, route.to));
  }
  return absl::OkStatus();
}

void ZmqTransport::Poll(absl::Duration timeout, const std::function<void(Message)>& handler) {
  Flush();
  if (!queued_.empty()) timeout = std::min(timeout, kFullQueueRetry);
  woken_ = false;
  // Do not wait if messages are available; but poll the drained links too, so that a busy peer does
  // not starve them.
  const auto drained = [](const Link& link) { return link.drained; };
  if (!std::ranges::all_of(links_, drained)) {
    if (std::ranges::any_of(links_, drained)) {
      MarkReadable(absl::ZeroDuration(), /*take_wake=*/false);
    }
    if (ReceiveFromAll(handler)) {
      Flush();
      return;
    }
  }
  const bool forever = timeout == absl::InfiniteDuration();
  const absl::Time deadline = forever ? absl::InfiniteFuture() : SteadyNow() + timeout;
  // The descriptor may be readable without a message.
  while (true) {
    MarkReadable(timeout, /*take_wake=*/true);
    if (ReceiveFromAll(handler) || woken_) break;
    if (!forever) timeout = deadline - SteadyNow();
    if (timeout <= absl::ZeroDuration()) break;
  }
  Flush();
}

// Waits for an announcement of a link or of Wake (if `take_wake`).
void ZmqTransport::MarkReadable(absl::Duration timeout, bool take_wake) {
  const std::span<pollfd> items = std::span(poll_items_).subspan(take_wake ? 0 : kFixedItems);
  for (pollfd& item : items) item.revents = 0;
  const timespec limit = TimespecOf(timeout);
  const bool forever = timeout == absl::InfiniteDuration();
  if (ppoll(items.data(), items.size(), forever ? nullptr : &limit, nullptr) < 0) {
    TUG_CHECK_EQ(errno, EINTR) << std::strerror(errno);
    return;
  }
  for (size_t i = 0; i < links_.size(); ++i) {
    if (poll_items_[kFixedItems + i].revents != 0) links_[i].drained = false;
  }
  if (take_wake && poll_items_[1].revents != 0) woken_ = true;
  if (take_wake && poll_items_[0].revents != 0) {
    woken_ = true;
    uint64_t wakes;
    while (read(wake_fd_, &wakes, sizeof(wakes)) < 0 && errno == EINTR) {
    }
  }
}

// Reads one message of each link in turn, until all are empty or the batch is full. Returns whether
// there were any. The handler may add or replace links, so this keeps only indices.
bool ZmqTransport::ReceiveFromAll(const std::function<void(Message)>& handler) {
  ready_.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    const size_t link = (first_turn_ + i) % links_.size();
    if (!links_[link].drained) ready_.push_back(link);
  }
  int left = kMaxBatch;
  while (!ready_.empty()) {
    size_t kept = 0;
    for (const size_t link : ready_) {
      if (left <= 0) {
        first_turn_ = link;
        return true;
      }
      const int records = ReceiveOne(link, handler);
      left -= records;
      if (records > 0) ready_[kept++] = link;
    }
    ready_.resize(kept);
  }
  return left < kMaxBatch;
}

// Returns the number of messages received together, delivered or not; 0 if none was available.
int ZmqTransport::ReceiveOne(size_t link, const std::function<void(Message)>& handler) {
  const std::optional<PeerId> peer = links_[link].peer;
  std::array<ZmqFrame, 3> frames;
  // The ROUTER adds a frame: routing id, headers, payloads.
  const int wanted = peer.has_value() ? 2 : 3;
  const int count = ReadMessage(links_[link].socket.get(), std::span(frames).first(wanted));
  if (count == 0) {
    links_[link].drained = true;
    return 0;
  }
  const std::optional<PeerId> from = peer.has_value() ? peer : PeerOfRoutingId(frames[0].bytes());
  if (!from.has_value()) {
    admission_.Drop(Fault::kIdentity, "an unknown sender", "its routing id is not from Tugboat");
  } else if (count != wanted) {
    admission_.Drop(Fault::kFrames, PeerName(*from), "it does not consist of headers and payloads");
  } else if (frames[wanted - 2].bytes().size() > kMaxRecords * kHeaderBytes) {
    admission_.Drop(Fault::kFrames, PeerName(*from),
                    absl::StrCat("it has more than ", kMaxRecords, " headers"));
  } else {
    return Deliver(*from, std::move(frames[wanted - 2]), std::move(frames[wanted - 1]), handler);
  }
  return 1;
}

int ZmqTransport::Deliver(PeerId from, ZmqFrame headers, ZmqFrame payloads,
                          const std::function<void(Message)>& handler) {
  const Lease whole = LeaseOf(std::move(payloads));
  std::span<const std::byte> run = headers.bytes();
  size_t end = 0;  // end of the previous payload
  int records = 0;
  do {
    ++records;
    const size_t size = std::min(run.size(), kHeaderBytes);
    const std::optional<WireHeader> header = admission_.AdmitHeader(from, run.first(size));
    if (!header.has_value()) break;
    run = run.subspan(size);
    const size_t begin =
        header->payload_bytes == 0 ? end : std::min(PayloadOffset(end), whole.size_bytes());
    // The last payload extends to the end of the frame.
    const size_t rest = whole.size_bytes() - begin;
    const std::span<const std::byte> payload = whole.bytes().subspan(
        begin, run.empty() ? rest : std::min<size_t>(rest, header->payload_bytes));
    if (!admission_.AdmitPayload(*header, payload)) break;
    end = begin + payload.size();
    ++counters_.received_messages;
    counters_.received_bytes += kHeaderBytes + payload.size();
    handler(Message{*header, payload.empty() ? Lease() : whole.Slice(begin, payload.size())});
  } while (!run.empty());
  // Processing a large payload takes time: send pending replies now.
  if (whole.size_bytes() > kMaxBatchBytes) Flush();
  return records;
}

// Read access to received payloads; in place if they are aligned, else a copy.
Lease ZmqTransport::LeaseOf(ZmqFrame payloads) {
  const std::span<const std::byte> bytes = payloads.bytes();
  if (bytes.empty()) return Lease();
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kPayloadAlignment != 0) {
    std::shared_ptr<PoolBlock> copy = NewPoolBlock(pool_, bytes.size());
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    const std::span<const std::byte> copied(copy->data(), bytes.size());
    return Lease(std::move(copy), copied);
  }
  auto owner = std::allocate_shared<ZmqFrame>(PoolAllocator<ZmqFrame>(pool_), std::move(payloads));
  const std::span<const std::byte> in_place = owner->bytes();
  return Lease(std::move(owner), in_place);
}

void ZmqTransport::Wake() {
  const uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

TransportCounters ZmqTransport::counters() const {
  TransportCounters counters = counters_;
  counters.dropped = admission_.dropped();
  counters.connections_refused = zap_ == nullptr ? 0 : zap_->refused();
  return counters;
}

}  // namespace tug
