// SPDX-License-Identifier: Apache-2.0
#include "limits/raw_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {
namespace {

absl::Status SystemError(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::StatusOr<sockaddr_in> NameOf(const std::string& address, uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) {
    return absl::InternalError(absl::StrCat("not an IPv4 address: ", address));
  }
  return name;
}

// False: timeout.
bool WaitFor(int fd, short events, absl::Duration patience) {
  pollfd waited{fd, events, 0};
  const int timeout_ms = patience == absl::InfiniteDuration()
                             ? -1
                             : static_cast<int>(absl::ToInt64Milliseconds(patience));
  int ready = 0;
  do {
    ready = poll(&waited, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

absl::StatusOr<ListeningSocket> ListenAt(const std::string& address) {
  ASSIGN_OR_RETURN(sockaddr_in name, NameOf(address, 0));
  socklen_t size = sizeof(name);
  ListeningSocket listener{.fd = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  const int fd = listener.fd.get();
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&name), size) != 0 || listen(fd, 1) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return SystemError(absl::StrCat("cannot listen at ", address));
  }
  listener.port = ntohs(name.sin_port);
  return listener;
}

absl::StatusOr<FileDescriptor> Accept(const ListeningSocket& listener, absl::Duration patience) {
  if (!WaitFor(listener.fd.get(), POLLIN, patience)) {
    return absl::DeadlineExceededError("no peer connected in time");
  }
  FileDescriptor fd(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return SystemError("cannot accept");
  NoDelay(fd.get());
  return fd;
}

absl::StatusOr<FileDescriptor> Connect(const std::string& address, uint16_t port,
                                       absl::Duration patience) {
  ASSIGN_OR_RETURN(const sockaddr_in name, NameOf(address, port));
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("cannot make a socket");
  int error = 0;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof(error);
    if (!WaitFor(fd.get(), POLLOUT, patience)) {
      error = ETIMEDOUT;
    } else if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect to ", address, ":", port, ": ", std::strerror(error)));
  }
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  NoDelay(fd.get());
  return fd;
}

absl::Status SendAll(int fd, std::span<const char> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return SystemError("cannot send");
    at += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, std::span<char> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = recv(fd, bytes.data() + at, bytes.size() - at, 0);
    if (n < 0) return SystemError("cannot receive");
    if (n == 0) return absl::OutOfRangeError("the peer closed the connection");
    at += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace tug
