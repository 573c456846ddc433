#ifndef TUG_CLI_RAW_SOCKET_H_
#define TUG_CLI_RAW_SOCKET_H_

// TCP sockets for measurements, as the kernel makes them but for TCP_NODELAY.

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace tug {

struct ListeningSocket {
  FileDescriptor fd;
  uint16_t port = 0;
};

// At a free port of an IPv4 address of this host. Errors of all: INTERNAL, what the system said.
absl::StatusOr<ListeningSocket> ListenAt(const std::string& address);
// The next connection. DEADLINE_EXCEEDED: none came.
absl::StatusOr<FileDescriptor> Accept(const ListeningSocket& listener, absl::Duration patience);
// UNAVAILABLE: refused, no way there, or not answered in time.
absl::StatusOr<FileDescriptor> Connect(const std::string& address, uint16_t port,
                                       absl::Duration patience);
absl::Status SendAll(int fd, std::span<const char> bytes);
// OUT_OF_RANGE: the peer has closed before all had come.
absl::Status ReceiveAll(int fd, std::span<char> bytes);

}  // namespace tug

#endif  // TUG_CLI_RAW_SOCKET_H_
