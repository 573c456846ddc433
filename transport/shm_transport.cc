// SPDX-License-Identifier: Apache-2.0
#include "transport/shm_transport.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu/spin.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr int kListenBacklog = 1024;
// Interval of checks for other events, each a system call, while messages keep arriving.
constexpr absl::Duration kBetweenEvents = absl::Microseconds(100);

absl::Status NoFiles(const char* what) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot open ", what, ": ", std::strerror(errno),
                                                   "; raise the limit of open files (ulimit -n)"));
}

struct AbstractAddress {
  sockaddr_un address;
  socklen_t size;
};

AbstractAddress AddressOf(PeerId peer, const ShmCredentials& credentials) {
  const std::string name = credentials.NameOf(peer);
  AbstractAddress result{};
  result.address.sun_family = AF_UNIX;
  // A leading 0 makes the name abstract: it belongs to the network namespace, not to a file system.
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

const sockaddr* Generic(const AbstractAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.address);
}

bool IsSameUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

FileDescriptor NewSocket() {
  return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmTransport>> ShmTransport::Create(const Options& options) {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor doorbell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.valid() || !doorbell.valid()) return NoFiles("a transport");
  std::unique_ptr<ShmTransport> transport(
      new ShmTransport(options, std::move(epoll), std::move(doorbell)));
  if (options.listen) RETURN_IF_ERROR(transport->Listen());
  return transport;
}

ShmTransport::ShmTransport(const Options& options, FileDescriptor epoll, FileDescriptor doorbell)
    : options_(options),
      credentials_{options.keys, options.job},
      epoll_(std::move(epoll)),
      doorbell_(std::move(doorbell)),
      arena_(SharedArena::Create()),
      admission_(options.self, options.max_message_bytes) {
  Watch(doorbell_.get());
}

void ShmTransport::Watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  TUG_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) << std::strerror(errno);
}

absl::Status ShmTransport::Listen() {
  listener_ = NewSocket();
  if (!listener_.valid()) return NoFiles("a socket");
  const AbstractAddress address = AddressOf(options_.self, credentials_);
  if (bind(listener_.get(), Generic(address), address.size) != 0 ||
      listen(listener_.get(), kListenBacklog) != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen for shared memory: the socket name of ",
                     PeerName(options_.self), " is in use on this host: ", std::strerror(errno)));
  }
  Watch(listener_.get());
  return absl::OkStatus();
}

absl::Status ShmTransport::Connect(PeerId peer, const std::string& /*endpoint*/) {
  if (SharesMemoryWith(peer)) return absl::OkStatus();
  FileDescriptor socket = NewSocket();
  if (!socket.valid()) return NoFiles("a socket");
  const AbstractAddress address = AddressOf(peer, credentials_);
  if (connect(socket.get(), Generic(address), address.size) != 0 || !IsSameUser(socket.get())) {
    return absl::NotFoundError(absl::StrCat(PeerName(peer), " is not on this host"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ShmConnection> connection,
                   ShmConnection::Create(std::move(socket), options_.self, peer, doorbell_.get(),
                                         arena_, credentials_));
  Watch(connection->socket());
  connections_.push_back(std::move(connection));
  return absl::OkStatus();
}

ShmConnection* ShmTransport::FindConnection(PeerId peer) const {
  for (const std::unique_ptr<ShmConnection>& connection : connections_) {
    if (connection->peer() == peer && connection->failure().ok()) return connection.get();
  }
  return nullptr;
}

absl::Status ShmTransport::Send(Outgoing message) {
  const uint64_t payload_bytes = message.payload.size_bytes();
  TUG_CHECK_LE(payload_bytes, options_.max_message_bytes) << "to " << PeerName(message.to);
  ShmConnection* const connection = FindConnection(message.to);
  if (connection == nullptr) {
    return absl::NotFoundError(absl::StrCat(PeerName(message.to), " is not on this host"));
  }
  std::array<std::byte, kHeaderBytes> header;
  SealHeader(options_.self, message.payload.bytes(), /*checksum=*/false, message.header, header);
  RETURN_IF_ERROR(connection->Send(header, std::move(message.payload)));
  ++counters_.sent_messages;
  counters_.sent_bytes += kHeaderBytes + payload_bytes;
  return absl::OkStatus();
}

std::shared_ptr<AlignedBuffer> ShmTransport::NewBuffer(size_t size_bytes) {
  absl::StatusOr<std::shared_ptr<AlignedBuffer>> buffer = arena_->NewBuffer(size_bytes);
  if (buffer.ok()) return *std::move(buffer);
  return Transport::NewBuffer(size_bytes);  // sent with a copy
}

// ---- receiving ----

void ShmTransport::Poll(absl::Duration timeout, const std::function<void(Message)>& handler) {
  PollWith(timeout, handler, [this](absl::Duration rest) {
    const int64_t rest_ms =
        rest == absl::InfiniteDuration()
            ? -1
            : absl::ToInt64Milliseconds(absl::Ceil(rest, absl::Milliseconds(1)));
    pollfd waited{epoll_.get(), POLLIN, 0};
    poll(&waited, 1, static_cast<int>(rest_ms));
  });
}

void ShmTransport::PollWith(absl::Duration timeout, const std::function<void(Message)>& handler,
                            const std::function<void(absl::Duration)>& wait) {
  bool busy = Drain(handler) > 0;
  if (busy) last_message_ = time_.Now();
  if (busy || (timeout > absl::ZeroDuration() && SpinForWork())) {
    busy = busy || Drain(handler) > 0;
    if (busy && last_message_ < next_events_) return;
    wait(absl::ZeroDuration());
    return HandleEvents();
  }
  SetSleeping(true);
  wait(HasWork() ? absl::ZeroDuration() : timeout);
  SetSleeping(false);
  HandleEvents();
  if (Drain(handler) > 0) last_message_ = time_.Now();
}

bool ShmTransport::HasWork() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection->HasWork() || !connection->failure().ok();
  });
}

bool ShmTransport::SpinForWork() {
  if (options_.spin <= absl::ZeroDuration() || connections_.empty()) return false;
  const absl::Time begin = time_.Now();
  const bool recently = begin - last_message_ <= options_.spin;
  const std::optional<absl::Time> seen = SpinFor(
      time_, begin, recently ? options_.spin : absl::ZeroDuration(), [this] { return HasWork(); });
  if (seen.has_value()) last_message_ = *seen;
  return seen.has_value();
}

void ShmTransport::SetSleeping(bool sleeping) {
  for (const auto& connection : connections_) connection->SetSleeping(sleeping);
}

int ShmTransport::Drain(const std::function<void(Message)>& handler) {
  int drained = 0;
  bool failed = false;
  // By index: the handler may add connections.
  for (size_t i = 0; i < connections_.size() && drained < kMaxBatch; ++i) {
    drained += DrainOne(*connections_[i], kMaxBatch - drained, handler);
    failed = failed || !connections_[i]->failure().ok();
  }
  if (failed && drained < kMaxBatch) RemoveFailed();
  if (drained == 0 || connections_.empty()) return drained;
  // Rotate, so that the same peer is not always first.
  std::rotate(connections_.begin(), connections_.begin() + 1, connections_.end());
  return drained;
}

// Call after their messages have been received.
void ShmTransport::RemoveFailed() {
  std::erase_if(connections_, [this](const std::unique_ptr<ShmConnection>& connection) {
    const absl::Status& failure = connection->failure();
    if (failure.ok()) return false;
    if (!absl::IsUnavailable(failure)) {
      const std::optional<PeerId> peer = connection->peer();
      admission_.Drop(Fault::kIdentity,
                      peer.has_value() ? PeerName(*peer) : "a process on this host",
                      failure.message());
    }
    return true;  // closing the socket removes it from the epoll set
  });
}

int ShmTransport::DrainOne(ShmConnection& connection, int limit,
                           const std::function<void(Message)>& handler) {
  connection.Advance();
  int drained = 0;
  for (; drained < limit; ++drained) {
    std::optional<absl::StatusOr<ShmConnection::Received>> received = connection.Receive();
    if (!received.has_value()) break;
    const PeerId from = *connection.peer();
    if (!received->ok()) {
      admission_.Drop(Fault::kPayloadSize, PeerName(from), received->status().message());
      continue;
    }
    const std::optional<WireHeader> header =
        admission_.Admit(from, (*received)->header, (*received)->payload.bytes());
    if (!header.has_value()) continue;
    ++counters_.received_messages;
    counters_.received_bytes += kHeaderBytes + header->payload_bytes;
    handler(Message{*header, std::move((*received)->payload), (*received)->home});
  }
  return drained;
}

// ---- events ----

void ShmTransport::HandleEvents() {
  next_events_ = time_.Now() + kBetweenEvents;
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == doorbell_.get()) {
      uint64_t rings;
      while (read(fd, &rings, sizeof(rings)) < 0 && errno == EINTR) {
      }
    } else if (fd == listener_.get()) {
      Accept();
    } else {
      OnSocket(fd);
    }
  }
}

void ShmTransport::Accept() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (!IsSameUser(socket.get())) {
      admission_.Drop(Fault::kIdentity, "a process on this host", "it runs as another user");
      continue;
    }
    auto connection = ShmConnection::Create(std::move(socket), options_.self, std::nullopt,
                                            doorbell_.get(), arena_, credentials_);
    if (!connection.ok()) {
      LogWarning("refused a connection through shared memory",
                 {{"endpoint", PeerName(options_.self)}, {"why", connection.status().ToString()}});
      continue;
    }
    Watch((*connection)->socket());
    connections_.push_back(*std::move(connection));
  }
}

void ShmTransport::OnSocket(int fd) {
  const auto found =
      std::find_if(connections_.begin(), connections_.end(),
                   [&](const auto& connection) { return connection->socket() == fd; });
  if (found == connections_.end()) return;
  (*found)->ReadPackets().IgnoreError();  // failure() reports errors; see Drain
}

void ShmTransport::Wake() {
  const uint64_t one = 1;
  while (write(doorbell_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

TransportCounters ShmTransport::counters() const {
  TransportCounters counters = counters_;
  counters.dropped = admission_.dropped();
  return counters;
}

}  // namespace tug
