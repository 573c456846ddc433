#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cli/raw_limits.h"
#include "proto/wire.h"

namespace tug {
namespace {

absl::Status SystemError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Listens at a free port of the network it is in, says "ADDRESS PORT" and takes one connection.
absl::StatusOr<int> AcceptOne(BenchChild& child, const std::string& host) {
  ASSIGN_OR_RETURN(const std::string address, BenchAddress(host));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  socklen_t size = sizeof(name);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&name), size) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return SystemError("cannot listen");
  }
  child.Say(absl::StrCat(address, " ", ntohs(name.sin_port)));
  const int fd = accept(listener, nullptr, nullptr);
  if (fd < 0) return SystemError("cannot accept");
  NoDelay(fd);
  return fd;
}

// `where`: what the other side said.
absl::StatusOr<int> ConnectTo(const std::string& where) {
  const std::vector<std::string> parts = absl::StrSplit(where, ' ');
  uint32_t port = 0;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  if (parts.size() != 2 || inet_pton(AF_INET, parts[0].c_str(), &name.sin_addr) != 1 ||
      !absl::SimpleAtoi(parts[1], &port)) {
    return absl::InternalError(absl::StrCat("not an address: ", where));
  }
  name.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) {
    return SystemError("cannot connect");
  }
  NoDelay(fd);
  return fd;
}

absl::Status SendAll(int fd, const std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return SystemError("cannot send");
    at += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int fd, std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = recv(fd, bytes.data() + at, bytes.size() - at, 0);
    if (n <= 0) return SystemError("cannot receive");
    at += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// Starts the two ends of a stream; the bytes count as going there, or back.
absl::Status StartStream(BenchProcesses& processes, size_t first, const std::string& from,
                         const std::string& to, uint64_t bytes, bool there) {
  RETURN_IF_ERROR(processes.Start("TCP receiver", to, [=](BenchChild& child) -> absl::Status {
    ASSIGN_OR_RETURN(const int fd, AcceptOne(child, to));
    std::vector<char> buffer(bytes);
    while (true) {
      const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) return SystemError("cannot receive");
      const auto got = static_cast<uint64_t>(n);
      child.tally().Count(there ? got : 0, there ? 0 : got, 1);
    }
  }));
  ASSIGN_OR_RETURN(const std::string where, processes.Hear(first));
  return processes.Start("TCP sender", from, [=](BenchChild&) -> absl::Status {
    ASSIGN_OR_RETURN(const int fd, ConnectTo(where));
    const std::vector<char> buffer(bytes, 1);
    while (true) RETURN_IF_ERROR(SendAll(fd, buffer));
  });
}

}  // namespace

absl::StatusOr<BenchWindow> TcpStream(const RawSetting& setting) {
  BenchProcesses processes;
  RETURN_IF_ERROR(StartStream(processes, 0, setting.worker_host, setting.server_host, setting.bytes,
                              /*there=*/true));
  return processes.Measure(setting.window);
}

absl::StatusOr<BenchWindow> OpposingTcpStreams(const RawSetting& setting) {
  BenchProcesses processes;
  RETURN_IF_ERROR(StartStream(processes, 0, setting.worker_host, setting.server_host, setting.bytes,
                              /*there=*/true));
  RETURN_IF_ERROR(StartStream(processes, 2, setting.server_host, setting.worker_host, setting.bytes,
                              /*there=*/false));
  return processes.Measure(setting.window);
}

absl::StatusOr<BenchWindow> TcpRoundTrip(const RawSetting& setting) {
  BenchProcesses processes;
  const uint64_t bytes = setting.bytes;
  const std::string host = setting.server_host;
  RETURN_IF_ERROR(processes.Start("TCP answerer", host, [=](BenchChild& child) -> absl::Status {
    ASSIGN_OR_RETURN(const int fd, AcceptOne(child, host));
    std::vector<char> message(kHeaderBytes + bytes);
    const std::vector<char> answer(kHeaderBytes);
    while (true) {
      RETURN_IF_ERROR(ReceiveAll(fd, message));
      RETURN_IF_ERROR(SendAll(fd, answer));
    }
  }));
  ASSIGN_OR_RETURN(const std::string where, processes.Hear(0));
  RETURN_IF_ERROR(
      processes.Start("TCP asker", setting.worker_host, [=](BenchChild& child) -> absl::Status {
        ASSIGN_OR_RETURN(const int fd, ConnectTo(where));
        const std::vector<char> message(kHeaderBytes + bytes);
        std::vector<char> answer(kHeaderBytes);
        while (true) {
          const int64_t begin = MonotonicNs();
          RETURN_IF_ERROR(SendAll(fd, message));
          RETURN_IF_ERROR(ReceiveAll(fd, answer));
          child.tally().AddLatency(0, MonotonicNs() - begin);
          child.tally().Count(bytes, 0, 1);
        }
      }));
  return processes.Measure(setting.window);
}

}  // namespace tug
