// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "limits/raw_limits.h"
#include "limits/raw_socket.h"
#include "proto/wire.h"

namespace tug {
namespace {

// Listens on a free port of its network, reports "ADDRESS PORT" and accepts one connection.
absl::StatusOr<FileDescriptor> AcceptOne(BenchChild& child, const std::string& host) {
  ASSIGN_OR_RETURN(const std::string address, BenchAddress(host));
  ASSIGN_OR_RETURN(const ListeningSocket listener, ListenAt(address));
  child.Say(absl::StrCat(address, " ", listener.port));
  return Accept(listener, absl::InfiniteDuration());
}

// `where`: the address reported by the other side.
absl::StatusOr<FileDescriptor> ConnectTo(const std::string& where) {
  const std::vector<std::string> parts = absl::StrSplit(where, ' ');
  uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) {
    return absl::InternalError(absl::StrCat("not an address: ", where));
  }
  return Connect(parts[0], static_cast<uint16_t>(port), absl::InfiniteDuration());
}

// Starts both ends of a stream; `there`: count its bytes as worker to server, else as server to
// worker.
absl::Status StartStream(BenchProcesses& processes, size_t first, const std::string& from,
                         const std::string& to, uint64_t bytes, bool there) {
  RETURN_IF_ERROR(processes.Start("TCP receiver", to, [=](BenchChild& child) -> absl::Status {
    ASSIGN_OR_RETURN(const FileDescriptor fd, AcceptOne(child, to));
    std::vector<char> buffer(bytes);
    while (true) {
      const ssize_t n = recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (n <= 0)
        return absl::InternalError(absl::StrCat("cannot receive: ", std::strerror(errno)));
      const auto got = static_cast<uint64_t>(n);
      child.tally().Count(there ? got : 0, there ? 0 : got, 1);
    }
  }));
  ASSIGN_OR_RETURN(const std::string where, processes.Hear(first));
  return processes.Start("TCP sender", from, [=](BenchChild&) -> absl::Status {
    ASSIGN_OR_RETURN(const FileDescriptor fd, ConnectTo(where));
    const std::vector<char> buffer(bytes, 1);
    while (true) RETURN_IF_ERROR(SendAll(fd.get(), buffer));
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
    ASSIGN_OR_RETURN(const FileDescriptor fd, AcceptOne(child, host));
    std::vector<char> message(kHeaderBytes + bytes);
    const std::vector<char> answer(kHeaderBytes);
    while (true) {
      RETURN_IF_ERROR(ReceiveAll(fd.get(), message));
      RETURN_IF_ERROR(SendAll(fd.get(), answer));
    }
  }));
  ASSIGN_OR_RETURN(const std::string where, processes.Hear(0));
  RETURN_IF_ERROR(
      processes.Start("TCP asker", setting.worker_host, [=](BenchChild& child) -> absl::Status {
        ASSIGN_OR_RETURN(const FileDescriptor fd, ConnectTo(where));
        const std::vector<char> message(kHeaderBytes + bytes);
        std::vector<char> answer(kHeaderBytes);
        while (true) {
          const int64_t begin = MonotonicNs();
          RETURN_IF_ERROR(SendAll(fd.get(), message));
          RETURN_IF_ERROR(ReceiveAll(fd.get(), answer));
          child.tally().AddLatency(0, MonotonicNs() - begin);
          child.tally().Count(bytes, 0, 1);
        }
      }));
  return processes.Measure(setting.window);
}

}  // namespace tug
