// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/connection_gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/net/host_name.h"
#include "grpcpp/server_builder.h"

namespace tug {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n";  // of clear-text HTTP/2
constexpr char kTlsHandshake = 0x16;                          // type of the first record
// Longer than any client's hello in practice; RFC 8446 allows more.
constexpr size_t kMaxPeekedBytes = 16 << 10;
constexpr absl::Duration kAcceptPause = absl::Milliseconds(10);  // when out of files

// Logs a peer's fingerprint only if it is well-formed: the peer is unauthenticated.
bool IsFingerprint(absl::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// Makes the socket readable once it has `count` bytes, or at its end.
void WantBytes(int socket, size_t count) {
  const int bytes = static_cast<int>(count);
  setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

}  // namespace

int PortIn(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

absl::StatusOr<std::unique_ptr<ConnectionGate>> ConnectionGate::Create(FileDescriptor listener,
                                                                       const JobKeys& keys,
                                                                       Refusals& refusals,
                                                                       Strangers& strangers) {
  FileDescriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  absl::StatusOr<ClientHelloReader> hellos = ClientHelloReader::Create();
  if (!hellos.ok()) return hellos.status();
  if (!wake.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot listen: ", std::strerror(errno), "; raise the limit of open files (ulimit -n)"));
  }
  return std::unique_ptr<ConnectionGate>(new ConnectionGate(
      std::move(listener), std::move(wake), keys, *std::move(hellos), refusals, strangers));
}

ConnectionGate::ConnectionGate(FileDescriptor listener, FileDescriptor wake, const JobKeys& keys,
                               ClientHelloReader hellos, Refusals& refusals, Strangers& strangers)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      keys_(keys),
      hellos_(std::move(hellos)),
      refusals_(refusals),
      strangers_(strangers) {}

ConnectionGate::~ConnectionGate() {
  closing_ = true;
  const uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  if (thread_.joinable()) thread_.join();
}

void ConnectionGate::Open(Acceptor plain, Acceptor encrypted) {
  plain_ = std::move(plain);
  encrypted_ = std::move(encrypted);
  thread_ = std::thread([this] { Run(); });
}

void ConnectionGate::Run() {
  std::vector<pollfd> polled;
  while (true) {
    polled = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Waiting& waiting : waiting_) {
      polled.push_back({waiting.socket.get(), POLLIN | POLLRDHUP, 0});
    }
    absl::Time deadline = strangers_.HangUp(time_.Now());
    if (!waiting_.empty()) deadline = std::min(deadline, waiting_.front().deadline);
    int timeout_ms = -1;
    if (deadline != absl::InfiniteFuture()) {
      const absl::Duration left = deadline - time_.Now();
      timeout_ms = static_cast<int>(
          std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
    }
    poll(polled.data(), polled.size(), timeout_ms);
    if (closing_) return;
    const absl::Time now = time_.Now();
    size_t next = 2;
    for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
      const short events = polled[next++].revents;
      const bool said_all = (events & ~POLLIN) != 0;
      const bool stays = now < waiting->deadline && (events == 0 || (Look(*waiting) && !said_all));
      waiting = stays ? std::next(waiting) : waiting_.erase(waiting);
    }
    if (polled[1].revents != 0) Accept();
  }
}

void ConnectionGate::Accept() {
  // At most kMaxWaitingConnections / 4 at once: a connection dropped to make room has been examined
  // before.
  for (size_t accepted = 0; accepted < kMaxWaitingConnections / 4; ++accepted) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    FileDescriptor socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket.valid()) {
      // Out of files: the listener would be readable again at once.
      if (errno != EAGAIN && errno != EWOULDBLOCK) absl::SleepFor(kAcceptPause);
      return;
    }
    if (waiting_.size() == kMaxWaitingConnections) waiting_.pop_front();
    waiting_.push_back({std::move(socket), NumericAddress(address, size), PortIn(address),
                        time_.Now() + kPatience});
  }
}

bool ConnectionGate::Look(Waiting& waiting) {
  std::string said(kMaxPeekedBytes, '\0');
  const ssize_t size = recv(waiting.socket.get(), said.data(), said.size(), MSG_PEEK);
  if (size < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return true;
  if (size <= 0) return false;  // closed without sending: a port probe
  said.resize(static_cast<size_t>(size));
  switch (DoorFor(waiting, said)) {
    case Door::kMoreBytes:
      if (said.size() == kMaxPeekedBytes) return false;
      WantBytes(waiting.socket.get(), said.size() + 1);
      return true;
    case Door::kPlain:
      Pass(waiting, *plain_);
      return false;
    case Door::kEncrypted:
      Pass(waiting, *encrypted_);
      return false;
    case Door::kNone:
      return false;
  }
  return false;
}

ConnectionGate::Door ConnectionGate::DoorFor(Waiting& waiting, const std::string& said) {
  if (said[0] == kTlsHandshake) return DoorForTls(waiting, said);
  const size_t compared = std::min(said.size(), kPreface.size());
  if (absl::string_view(said).substr(0, compared) != kPreface.substr(0, compared)) {
    refusals_.Add(waiting.address, "not the Tugboat control protocol");
    return Door::kNone;
  }
  return compared < kPreface.size() ? Door::kMoreBytes : Door::kPlain;
}

ConnectionGate::Door ConnectionGate::DoorForTls(Waiting& waiting, const std::string& said) {
  const auto name = hellos_.ServerName(std::as_bytes(std::span(said)));
  if (!name.ok()) {
    refusals_.Add(waiting.address, "not the Tugboat control protocol");
    return Door::kNone;
  }
  if (!name->has_value()) return Door::kMoreBytes;
  if (encrypted_ != nullptr && **name == TlsName(keys_)) return Door::kEncrypted;
  absl::string_view fingerprint = **name;
  if (!absl::ConsumeSuffix(&fingerprint, kTlsNameEnd) || !IsFingerprint(fingerprint)) {
    refusals_.Add(waiting.address, "TLS without the keys of a job");
  } else if (encrypted_ == nullptr) {
    refusals_.Add(waiting.address, "its keys are for mode curve, the job's for mode token");
  } else {
    refusals_.Add(waiting.address,
                  absl::StrCat("its keys belong to another job (fingerprint ", fingerprint,
                               ", this job's ", KeysFingerprint(keys_), ")"));
  }
  return Door::kNone;
}

void ConnectionGate::Pass(Waiting& waiting, grpc::experimental::ExternalConnectionAcceptor& to) {
  WantBytes(waiting.socket.get(), 1);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener_.get();
  connection.fd = fcntl(waiting.socket.get(), F_DUPFD_CLOEXEC, 0);
  if (connection.fd < 0) return;
  strangers_.Add(waiting.address, waiting.port, std::move(waiting.socket), time_.Now());
  to.HandleNewConnection(&connection);
}

}  // namespace tug
